//! Which documents may have been sent before although nobody knows what became of them: they are looked for before they are created, since
//! the index that is written to may be another one by now.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::EventId;

use super::config::{Conflict, ElasticsearchConfig, Target};
use crate::{Batch, Record, Write as Kind};

/// Documents that are remembered one by one. Beyond it everything that was received until now is in doubt: more is looked for, and nothing forgotten.
const REMEMBERED_MAX: usize = 100_000;
/// By how much a clock may have been set back between the receipt of an event and the start that sends it again.
const CLOCK_MARGIN: Duration = Duration::from_mins(1);

/// A document that was created: where it stands, and what it can be deleted by as long as nobody has changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The index: of a data stream or an alias the one behind it.
    pub(super) index: String,
    /// Its `_seq_no`.
    pub(super) number: u64,
    /// Its `_primary_term`.
    pub(super) term: u64,
}

/// An id, and the revision of a result, each of which is a document in a data stream.
type Key = (EventId, Option<u64>);

/// What a sink's attempts have left in doubt. It ends with the process: what was received before one began is all in doubt.
#[derive(Debug)]
pub(super) struct Doubt {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What was received before may have been sent by a process before this one: microseconds since 1970, UTC.
    before: i64,
    /// What this process has sent, perhaps with the document that was made and may be one too many.
    sent: HashMap<Key, Option<Made>>,
}

/// A record of a batch that may have been sent before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubted {
    /// Its index within the batch.
    pub(super) at: usize,
    /// The document that an attempt has made, which is still to be held against older indices.
    pub(super) made: Option<Made>,
}

/// An attempt to store a batch. If it is given up without an end, all of the batch is in doubt.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    doubt: &'a Doubt,
    /// `None` once it has ended.
    batch: Option<&'a Batch>,
}

impl Doubt {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { before: until_now(), sent: HashMap::new() }) }
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of `batch` that may have been sent before, of those that are created. What replaces something isn't looked for: its
    /// place is the index that is written to.
    pub(super) fn of(&self, config: &ElasticsearchConfig, batch: &Batch) -> Vec<Doubted> {
        let state = self.held();
        let doubted = |(at, record): (usize, Record<'_>)| {
            let sent = state.sent.get(&key(&record));
            let is_doubted = is_created(config, &record) && (sent.is_some() || record.received_at < state.before);
            is_doubted.then(|| Doubted { at, made: sent.cloned().flatten() })
        };
        batch.records().enumerate().filter_map(doubted).collect()
    }

    /// Begins an attempt to store `batch`.
    pub(super) const fn begin<'a>(&'a self, batch: &'a Batch) -> Attempt<'a> {
        Attempt { doubt: self, batch: Some(batch) }
    }
}

impl Attempt<'_> {
    /// It has ended: the records at `left` aren't stored for certain, and of those in `unknown` nobody knows it.
    pub(super) fn ended(mut self, left: &[usize], unknown: Vec<Doubted>) {
        let Some(batch) = self.batch.take() else { return };
        let mut state = self.doubt.held();
        if !state.sent.is_empty() {
            let mut left = left.to_vec();
            left.sort_unstable();
            let settled = batch.records().enumerate().filter(|(at, _)| left.binary_search(at).is_err());
            settled.for_each(|(_, record)| drop(state.sent.remove(&key(&record))));
        }
        for Doubted { at, made } in unknown {
            if let Some(record) = batch.get(at) {
                state.remember(key(&record), made);
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        let mut state = self.doubt.held();
        batch.records().for_each(|record| state.remember(key(&record), None));
    }
}

impl State {
    fn remember(&mut self, key: Key, made: Option<Made>) {
        if self.sent.len() >= REMEMBERED_MAX && !self.sent.contains_key(&key) {
            self.before = self.before.max(until_now());
            self.sent.clear();
        }
        let known = self.sent.entry(key).or_default();
        // What was made is still to be looked at, however many attempts to do so fail.
        if made.is_some() {
            *known = made;
        }
    }
}

fn key(record: &Record<'_>) -> Key {
    let revision = match record.write {
        Kind::Insert => None,
        Kind::Upsert(revision) => Some(revision),
    };
    (record.id, revision)
}

/// Whether a record becomes a document by `create`.
fn is_created(config: &ElasticsearchConfig, record: &Record<'_>) -> bool {
    let keeps = matches!(config.conflict, Conflict::DeadLetter | Conflict::Ignore);
    config.target == Target::DataStream || (keeps && record.write == Kind::Insert)
}

/// A time which everything that has come by now was received before, though the clock was set back a little: microseconds since 1970, UTC.
fn until_now() -> i64 {
    let now = clock::since_1970() + CLOCK_MARGIN;
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use event::{Lane, Origin};

    use super::*;

    fn batch(received_at: i64, ids: &[u8], write: Kind) -> Batch {
        let mut batch = Batch::new(Lane { origin: Origin([1; 16]), shard: 0, sink: "search".into() }, 1);
        for (sequence, id) in (1..).zip(ids) {
            let block = Bytes::from("access{}");
            let record = Record {
                sequence,
                id: EventId([*id; 16]),
                type_name: std::str::from_utf8(&block[..6]).unwrap(),
                source: "",
                received_at,
                event_time: None,
                write,
                payload: &block[6..],
            };
            batch.push(&block, &record);
        }
        batch
    }

    fn doubted(doubt: &Doubt, batch: &Batch) -> Vec<usize> {
        doubt.of(&super::super::tests::config(), batch).into_iter().map(|doubted| doubted.at).collect()
    }

    fn made() -> Made {
        Made { index: "i".to_owned(), number: 7, term: 1 }
    }

    #[test]
    fn what_was_there_before_the_start_is_in_doubt_and_what_comes_later_is_not() {
        let doubt = Doubt::new();
        assert_eq!(doubted(&doubt, &batch(0, &[1, 2], Kind::Insert)), [0, 1]);
        assert!(doubted(&doubt, &batch(i64::MAX, &[1, 2], Kind::Insert)).is_empty());
        assert!(doubted(&doubt, &batch(0, &[1], Kind::Upsert(1))).is_empty(), "it replaces something");
        let mut config = super::super::tests::config();
        config.target = Target::DataStream;
        assert_eq!(doubt.of(&config, &batch(0, &[1], Kind::Upsert(1))).len(), 1, "each revision is created there");
        config = super::super::tests::config();
        config.conflict = Conflict::Overwrite;
        assert!(doubt.of(&config, &batch(0, &[1], Kind::Insert)).is_empty());
    }

    #[test]
    fn an_attempt_leaves_in_doubt_what_it_doesn_t_settle() {
        let (doubt, batch) = (Doubt::new(), batch(i64::MAX, &[1, 2, 3], Kind::Insert));
        doubt.begin(&batch).ended(&[], Vec::new());
        assert!(doubted(&doubt, &batch).is_empty(), "all of it is stored");
        doubt.begin(&batch).ended(&[1, 0], vec![Doubted { at: 1, made: Some(made()) }]);
        assert_eq!(doubted(&doubt, &batch), [1]);
        drop(doubt.begin(&batch));
        let all = doubt.of(&super::super::tests::config(), &batch);
        let expected = [None, Some(made()), None].into_iter().enumerate().map(|(at, made)| Doubted { at, made });
        assert_eq!(all, expected.collect::<Vec<_>>(), "given up, and what was made isn't forgotten");
        doubt.begin(&batch).ended(&[2], Vec::new());
        assert_eq!(doubted(&doubt, &batch), [2], "what wasn't taken now may still have been taken before");
    }

    #[test]
    fn too_much_to_be_remembered_leaves_all_in_doubt() {
        let doubt = Doubt::new();
        doubt.held().before = 0;
        let batch = batch(1, &[1, 2], Kind::Insert);
        assert!(doubted(&doubt, &batch).is_empty());
        for number in 0..REMEMBERED_MAX as u64 {
            doubt.held().remember((EventId([9; 16]), Some(number)), None);
        }
        assert!(doubted(&doubt, &batch).is_empty());
        doubt.held().remember((EventId([8; 16]), None), None);
        assert_eq!(doubted(&doubt, &batch), [0, 1]);
        assert_eq!(doubt.held().sent.len(), 1);
    }
}
