//! Dead letters by sink, type and the common part of their reasons, in one pass and bounded memory.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ledger::SinkName;

use crate::blocked::Blocked;
use crate::dead_record::DeadRecord;
use crate::filter::DeadFilter;
use crate::reader::DeadLetterReader;
use crate::reason_group::group_reason;
use crate::{DeadLetters, later};

/// Groups that are listed.
const LISTED_MAX: usize = 200;
/// Groups that are counted: about 3 MB, if all reasons are long. Groups that begin later are only numbered.
const COUNTED_MAX: usize = 4_096;
/// Groups that are numbered, in 1 MB. `more` counts no further ones.
const NUMBERED_MAX: usize = 65_536;

/// Dead letters with a common sink, type and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadGroup {
    /// The sink that rejected them.
    pub sink: SinkName,
    /// Their type's name.
    pub type_name: String,
    /// Their reason, with `…` instead of each quoted part and each word with a digit; at most 512 bytes.
    pub reason: String,
    /// Their number.
    pub letters: u64,
    /// The earliest receipt: microseconds since 1970, UTC.
    pub oldest: i64,
    /// The latest receipt.
    pub newest: i64,
}

/// Groups of dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadGroups {
    /// The largest first, at most 200.
    pub groups: Vec<DeadGroup>,
    /// The number of the others. Of more than 65,536 it is a lower bound.
    pub more: u64,
}

/// The groups that were found so far.
#[derive(Default)]
pub(crate) struct GroupCount {
    /// By hash. All groups share one bound.
    groups: HashMap<u64, DeadGroup>,
    others: HashSet<u64>,
    hasher: RandomState,
    /// The last reason, and its group's: most follow an equal one.
    last: Option<(String, String)>,
}

impl GroupCount {
    /// Adds the dead letters of a sink. It reads the disk.
    pub(crate) fn add_all(&mut self, dead: &Arc<DeadLetters>, filter: &DeadFilter) -> Result<(), Blocked> {
        let Some(mut reading) = DeadLetterReader::begin(dead)? else { return Ok(()) };
        while let Some(chunk) = reading.read().map_err(later)? {
            for (_, record) in reading.held_in(&chunk, filter) {
                self.add(dead.sink(), &record);
            }
        }
        Ok(())
    }

    fn add(&mut self, sink: &SinkName, record: &DeadRecord<'_>) {
        let (type_name, received) = (record.event.type_name, record.event.received_at);
        let reason = match self.last.take() {
            Some((last, group)) if last == record.reason => (last, group),
            _ => (record.reason.to_owned(), group_reason(record.reason)),
        };
        let key = self.hasher.hash_one((&**sink, type_name, &reason.1));
        let is_full = self.groups.len() >= COUNTED_MAX;
        if let Some(group) = self.groups.get_mut(&key) {
            group.letters += 1;
            group.oldest = group.oldest.min(received);
            group.newest = group.newest.max(received);
        } else if !is_full {
            let (sink, type_name, reason) = (sink.clone(), type_name.to_owned(), reason.1.clone());
            let group = DeadGroup { sink, type_name, reason, letters: 1, oldest: received, newest: received };
            self.groups.insert(key, group);
        } else if self.others.len() < NUMBERED_MAX {
            self.others.insert(key);
        }
        self.last = Some(reason);
    }

    pub(crate) fn largest(self) -> DeadGroups {
        let mut groups: Vec<DeadGroup> = self.groups.into_values().collect();
        groups.sort_unstable_by(|a, b| {
            let names = |group: &DeadGroup| (group.sink.clone(), group.type_name.clone(), group.reason.clone());
            b.letters.cmp(&a.letters).then_with(|| names(a).cmp(&names(b)))
        });
        let more = groups.len().saturating_sub(LISTED_MAX) + self.others.len();
        groups.truncate(LISTED_MAX);
        DeadGroups { groups, more: more as u64 }
    }
}

#[cfg(test)]
mod tests {
    use event::EventId;
    use eventlog::JournalRecord;

    use super::*;
    use crate::dead_record::RecordKind;

    fn letter<'a>(type_name: &'a str, received: i64, reason: &'a str) -> DeadRecord<'a> {
        let event = JournalRecord::new(EventId([1; 16]), received, type_name, b"{}");
        DeadRecord { event, shard: 0, sequence: 1, kind: RecordKind::DeadLetter, reason, first_written_at: None }
    }

    #[test]
    fn largest_groups_come_first() {
        let (mut count, sink) = (GroupCount::default(), SinkName::from("local"));
        for (name, received, reason) in [("a", 5, "row 1"), ("b", 9, "row 2"), ("b", 3, "row 3"), ("b", 4, "other")] {
            count.add(&sink, &letter(name, received, reason));
        }
        let found = count.largest();
        let shown: Vec<_> = found.groups.iter().map(|g| (&*g.type_name, &*g.reason, g.letters)).collect();
        assert_eq!(shown, [("b", "row …", 2), ("a", "row …", 1), ("b", "other", 1)]);
        assert_eq!((found.groups[0].oldest, found.groups[0].newest, found.more), (3, 9, 0));
    }

    #[test]
    fn number_of_groups_is_bounded() {
        let (mut count, sink) = (GroupCount::default(), SinkName::from("local"));
        let word = |mut number: usize| {
            let mut word = String::new();
            while number > 0 {
                word.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
                number /= 26;
            }
            word
        };
        for number in 0..COUNTED_MAX + 100 {
            count.add(&sink, &letter("a", 1, &word(number)));
        }
        count.add(&sink, &letter("a", 1, "b"));
        assert_eq!((count.groups.len(), count.others.len()), (COUNTED_MAX, 100));
        let found = count.largest();
        assert_eq!((found.groups.len(), found.more), (LISTED_MAX, (COUNTED_MAX + 100 - LISTED_MAX) as u64));
        assert_eq!((&*found.groups[0].reason, found.groups[0].letters), ("b", 2));
    }
}
