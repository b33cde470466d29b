//! What is known of a sink's dead letters without reading them: for each event its newest record in the journal, and
//! its state.
//!
//! A dead letter's key is the event's position in its shard. Its id is not: two events may have been rejected under one
//! id.

use std::collections::{BTreeMap, BTreeSet};

use event::TypeName;
use eventlog::SequenceRange;
use ledger::Recount;

use crate::dead_record::DeadRecord;
use crate::entries::{Entries, Entry};
use crate::state::DeadLetterState;

/// A rejected event: held, or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) sequence: u64,
    /// The position of its newest record.
    pub(crate) at: u64,
    pub(crate) is_held: bool,
}

/// All dead letters of a sink whose records are still there, by shard and sequence of their events.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<u16, Entries>,
    held: BTreeMap<Box<str>, u64>,
    held_count: u64,
    /// How many events of each type became dead letters since the journal was opened. It never falls.
    written: BTreeMap<Box<str>, u64>,
    settled: usize,
}

impl Index {
    /// Adds a record at position `at`, and returns what the ledger has to count.
    pub(crate) fn note(&mut self, at: u64, record: &DeadRecord<'_>) -> Option<Recount> {
        let DeadRecord { shard, sequence, kind, .. } = *record;
        let state = DeadLetterState::of(kind)?;
        let before = self.entries.entry(shard).or_default().insert(sequence, Entry { at, state });
        let before = before.map(|entry| entry.state);
        match before {
            Some(DeadLetterState::Held) => {
                self.held_count = self.held_count.saturating_sub(1);
                self.count_held(record.event.type_name, |held| held.saturating_sub(1));
            }
            Some(_) => self.settled = self.settled.saturating_sub(1),
            None => {}
        }
        if state == DeadLetterState::Held {
            self.held_count += 1;
            self.count_held(record.event.type_name, |held| held + 1);
            if before.is_none_or(|before| !before.counts_as_dead()) {
                *self.written.entry(record.event.type_name.into()).or_default() += 1;
            }
        } else {
            self.settled += 1;
        }
        // The end of a dead letter whose segment was freed: it was counted as what it was before.
        let was_dead = before.is_none_or(DeadLetterState::counts_as_dead);
        (was_dead != state.counts_as_dead()).then_some(())?;
        let type_name = TypeName::new(record.event.type_name).ok()?;
        Some(Recount { shard, sequence, type_name, is_stored: was_dead, was_pending: false })
    }

    fn count_held(&mut self, type_name: &str, change: impl FnOnce(u64) -> u64) {
        match self.held.get_mut(type_name) {
            Some(held) => *held = change(*held),
            None => drop(self.held.insert(type_name.into(), change(0))),
        }
    }

    /// The newest record of an event.
    pub(crate) fn entry(&self, shard: u16, sequence: u64) -> Option<Entry> {
        self.entries.get(&shard)?.get(sequence)
    }

    fn state(&self, shard: u16, sequence: u64) -> Option<DeadLetterState> {
        self.entries.get(&shard)?.get(sequence).map(|entry| entry.state)
    }

    /// Whether there is any record of the event.
    pub(crate) fn is_known(&self, record: &DeadRecord<'_>) -> bool {
        self.state(record.shard, record.sequence).is_some()
    }

    /// How many dead letters are held.
    pub(crate) const fn held_count(&self) -> u64 {
        self.held_count
    }

    pub(crate) fn is_held(&self, record: &DeadRecord<'_>) -> bool {
        self.state(record.shard, record.sequence) == Some(DeadLetterState::Held)
    }

    pub(crate) fn is_replayed(&self, record: &DeadRecord<'_>) -> bool {
        self.state(record.shard, record.sequence) == Some(DeadLetterState::Replayed)
    }

    /// Whether its lane skips the event: it is held or dropped.
    pub(crate) fn is_dead(&self, record: &DeadRecord<'_>) -> bool {
        self.state(record.shard, record.sequence).is_some_and(DeadLetterState::counts_as_dead)
    }

    /// Whether the record at `at` is a held dead letter, and no newer record replaces it.
    pub(crate) fn is_held_at(&self, at: u64, record: &DeadRecord<'_>) -> bool {
        let entry = self.entries.get(&record.shard).and_then(|entries| entries.get(record.sequence));
        entry.is_some_and(|entry| entry.state == DeadLetterState::Held && entry.at == at)
    }

    /// The sequences of the events from `shard` after `cursor` that its lane does not send.
    pub(crate) fn beyond(&self, shard: u16, cursor: u64) -> BTreeSet<u64> {
        let later = self.entries.get(&shard).map(|entries| entries.range(cursor.saturating_add(1), u64::MAX));
        let dead = later.into_iter().flatten().filter(|(_, entry)| entry.state.counts_as_dead());
        dead.map(|(sequence, _)| sequence).collect()
    }

    /// The sequences of the events from `shard` after `cursor` that the sink stored on a replay.
    pub(crate) fn replayed_beyond(&self, shard: u16, cursor: u64) -> BTreeSet<u64> {
        let later = self.entries.get(&shard).map(|entries| entries.range(cursor.saturating_add(1), u64::MAX));
        let replayed = later.into_iter().flatten().filter(|(_, entry)| entry.state == DeadLetterState::Replayed);
        replayed.map(|(sequence, _)| sequence).collect()
    }

    /// The events of `span` that are held or dropped, in order, regardless of their ids.
    pub(crate) fn within<'a>(&'a self, span: &'a SequenceRange) -> impl Iterator<Item = Located> + 'a {
        let inside = self.entries.get(&span.shard).map(|entries| entries.range(span.first, span.last.max(span.first)));
        let dead = inside.into_iter().flatten().filter(|(_, entry)| entry.state.counts_as_dead());
        dead.map(|(sequence, Entry { at, state })| Located { sequence, at, is_held: state == DeadLetterState::Held })
    }

    /// How many dead letters of each type are held.
    pub(crate) fn held(&self) -> &BTreeMap<Box<str>, u64> {
        &self.held
    }

    /// All records of the journal were noted: from now on, new dead letters are counted.
    pub(crate) fn opened(mut self) -> Self {
        self.written.clear();
        self
    }

    /// How many events of each type became dead letters since the journal was opened.
    pub(crate) const fn written(&self) -> &BTreeMap<Box<str>, u64> {
        &self.written
    }

    /// The position of the first held dead letter.
    pub(crate) fn first_held(&self) -> Option<u64> {
        self.all().filter(|entry| entry.state == DeadLetterState::Held).map(|entry| entry.at).min()
    }

    fn all(&self) -> impl Iterator<Item = Entry> {
        self.entries.values().flat_map(|entries| entries.range(0, u64::MAX)).map(|(_, entry)| entry)
    }

    pub(crate) const fn any_settled(&self) -> bool {
        self.settled > 0
    }

    /// Forgets ended dead letters whose events no lane can read again. `oldest` is the oldest retained sequence by
    /// shard. Records from `kept_from` on may still be needed.
    pub(crate) fn forget_settled(&mut self, oldest: &[u64], kept_from: Option<u64>) {
        let is_kept = |entry: &Entry| kept_from.is_some_and(|from| entry.at >= from);
        for (shard, entries) in &mut self.entries {
            let oldest = oldest.get(usize::from(*shard)).copied().unwrap_or(0);
            entries.retain(|sequence, entry| {
                entry.state == DeadLetterState::Held || sequence >= oldest || is_kept(&entry)
            });
        }
        self.settled = self.all().filter(|entry| entry.state != DeadLetterState::Held).count();
    }

    /// The first position of the journal that is still needed.
    pub(crate) fn first_needed(&self) -> Option<u64> {
        self.all().map(|entry| entry.at).min()
    }
}

#[cfg(test)]
mod tests {
    use event::EventId;
    use eventlog::JournalRecord;

    use super::*;
    use crate::dead_record::RecordKind;

    fn record(sequence: u64, kind: RecordKind) -> DeadRecord<'static> {
        DeadRecord {
            event: JournalRecord::new(EventId([1; 16]), 1, "job", b"{}"),
            shard: 0,
            sequence,
            kind,
            reason: "",
            first_written_at: None,
        }
    }

    #[test]
    fn the_last_record_of_an_event_counts() {
        let mut index = Index::default();
        let mut note = |at, kind| index.note(at, &record(7, kind)).map(|recount| recount.is_stored);
        assert_eq!(note(1, RecordKind::DeadLetter), None);
        assert_eq!(note(2, RecordKind::DeadLetter), None, "a newer reason");
        assert_eq!(note(3, RecordKind::Replayed), Some(true));
        assert_eq!(note(4, RecordKind::DeadLetter), Some(false), "refused by another store");
        assert_eq!(note(5, RecordKind::Dropped), None);
        let dead = record(7, RecordKind::DeadLetter);
        assert!(index.is_dead(&dead) && !index.is_held(&dead));
        assert_eq!((index.held()["job"], index.first_held(), index.first_needed()), (0, None, Some(5)));
        assert_eq!(index.written()["job"], 2, "it was stored in between");
        assert!(index.opened().written().is_empty());
    }

    #[test]
    fn ended_dead_letters_stay_while_lanes_need_them() {
        let mut index = Index::default();
        index.note(1, &record(7, RecordKind::Dropped));
        index.note(2, &record(8, RecordKind::Replayed));
        index.note(3, &record(9, RecordKind::DeadLetter));
        assert_eq!(index.beyond(0, 0).into_iter().collect::<Vec<_>>(), [7, 9]);
        index.forget_settled(&[7], None);
        assert_eq!(index.first_needed(), Some(1));
        index.forget_settled(&[10], Some(2));
        assert_eq!(index.first_needed(), Some(2), "its store may have lost it");
        index.forget_settled(&[10], None);
        assert_eq!((index.first_needed(), index.any_settled()), (Some(3), false));
    }

    #[test]
    fn newest_record_of_an_event_is_held() {
        let mut index = Index::default();
        index.note(1, &record(7, RecordKind::DeadLetter));
        index.note(2, &record(7, RecordKind::DeadLetter));
        let dead = record(7, RecordKind::DeadLetter);
        assert!(!index.is_held_at(1, &dead) && index.is_held_at(2, &dead));
        assert_eq!(index.held()["job"], 1);
    }
}
