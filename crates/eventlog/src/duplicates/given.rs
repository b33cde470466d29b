//! The ids that clients gave, as a stretch of the log has them.
//!
//! The key of a batch stands in its last record and speaks of all of them. Where one was lost to damage the key is known as that of
//! a batch which was taken in part, and each record that is left by itself: what comes again then brings what is missing.

use event::EventId;
use journal::{Given, Record, Stretch};

use super::file::Remembered;

/// The ids that events of a stretch have, and batches that end in it.
pub(super) fn given_in(stretch: &Stretch) -> Vec<Remembered> {
    let mut ids = Vec::new();
    let mut lacks_some = false;
    let mut request = Whole::default();
    stretch.for_each_record(|sequence, record| {
        let is_whole = request.goes_on(sequence, record);
        let own = record.content.map(|content| Given { id: record.id, content });
        let batch = record.batch.map(|batch| if is_whole { batch } else { in_part(batch) });
        lacks_some |= batch.is_some() && !is_whole;
        let given = own.into_iter().chain(batch);
        ids.extend(given.map(|Given { id, content }| Remembered { id, content, sequence }));
    });
    if lacks_some {
        ids.extend(what_is_left_of_batches(stretch));
    }
    ids
}

/// What a batch is known by of which some records weren't taken. The hash of what came with it is the same.
pub(super) fn in_part(key: Given) -> Given {
    Given { id: key.id.in_part(), content: key.content }
}

/// Whether nothing is missing of a request so far.
#[derive(Default)]
struct Whole {
    /// The sequence that it goes on with.
    next: Option<u64>,
}

impl Whole {
    fn goes_on(&mut self, sequence: u64, record: &Record<'_>) -> bool {
        let is_whole = record.request_start || self.next == Some(sequence);
        self.next = (is_whole && !record.request_end).then_some(sequence + 1);
        is_whole
    }
}

/// The records without hashes of their own of batches that aren't whole, with the hash of the batch.
fn what_is_left_of_batches(stretch: &Stretch) -> Vec<Remembered> {
    let mut left = Vec::new();
    let mut whole = Whole::default();
    let mut request = Rest::default();
    stretch.for_each_record(|sequence, record| {
        request.add(sequence, record);
        let is_whole = whole.goes_on(sequence, record);
        if let Some(batch) = record.batch.filter(|_| !is_whole) {
            left.extend(request.of_batch(batch));
        }
        if record.request_end {
            request = Rest::default();
        }
    });
    left
}

/// What is left of a request.
#[derive(Default)]
struct Rest {
    records: Vec<(u64, EventId)>,
    /// So many of them may be of a request before, whose end is lost too.
    doubtful: usize,
    last: u64,
}

impl Rest {
    fn add(&mut self, sequence: u64, record: &Record<'_>) {
        if record.request_start {
            *self = Self::default();
        }
        // Where a single record is missing behind one that ends nothing, both sides are of one request.
        if sequence > self.last + 2 {
            self.doubtful = self.records.len();
        }
        self.last = sequence;
        if record.content.is_none() {
            self.records.push((sequence, record.id));
        }
    }

    fn of_batch(&self, batch: Given) -> impl Iterator<Item = Remembered> {
        let is_of_it = move |at: usize, id: EventId| at >= self.doubtful || id.in_part() == batch.id.in_part();
        let of_it = self.records.iter().enumerate().filter(move |(at, (_, id))| is_of_it(*at, *id));
        of_it.map(move |(_, (sequence, id))| Remembered { id: *id, content: batch.content, sequence: *sequence })
    }
}
