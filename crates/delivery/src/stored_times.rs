//! How long events took from their receipt until a store had them, by type and sink. A lane counts the events of a batch in plain arrays, and
//! adds these to the shared cells when the batch has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use event::TypeName;
use ledger::SinkName;
use metrics::{Buckets, SizeHistogram, SizeSnapshot, bounds, bucket_of};

/// The first bucket ends at a millisecond, the last bounded one at nearly nine minutes.
const SMALLEST_MICROSECONDS: u64 = 1_000;
const BOUNDS: [u64; metrics::BOUNDED_BUCKETS] = bounds(SMALLEST_MICROSECONDS);
/// Pairs of type and sink that are counted separately.
const PAIRS_MAX: usize = 1_000;
/// The type that further ones are counted as, for each sink.
const OTHER: &str = "other";

/// The times of all lanes, in microseconds.
#[derive(Debug, Default)]
pub struct StoredTimes(Mutex<BTreeMap<(TypeName, SinkName), Arc<SizeHistogram>>>);

impl StoredTimes {
    /// The times of each type and sink.
    #[must_use]
    pub fn snapshots(&self) -> Vec<((TypeName, SinkName), SizeSnapshot)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(pair, times)| (pair.clone(), times.snapshot())).collect()
    }

    fn of(&self, type_name: &TypeName, sink: &SinkName) -> Arc<SizeHistogram> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pair = (type_name.clone(), sink.clone());
        if all.len() >= PAIRS_MAX
            && !all.contains_key(&pair)
            && let Ok(other) = TypeName::new(OTHER)
        {
            pair.0 = other;
        }
        all.entry(pair).or_insert_with(|| Arc::new(SizeHistogram::new(SMALLEST_MICROSECONDS))).clone()
    }

    /// Counts events of a type outside of a lane's batches: ages in microseconds, and how many events have each.
    pub(crate) fn add(&self, type_name: &TypeName, sink: &SinkName, ages: impl Iterator<Item = (i64, u64)>) {
        let mut counted = Counted::default();
        ages.for_each(|(age, events)| counted.add(age, events));
        counted.flush(&self.of(type_name, sink));
    }
}

/// The times of a lane's batch, by the slot of the type.
pub(crate) struct BatchTimes {
    times: Arc<StoredTimes>,
    sink: SinkName,
    slots: Vec<Option<Slot>>,
    /// The slots that have counted something.
    touched: Vec<usize>,
}

struct Slot {
    shared: Arc<SizeHistogram>,
    counted: Box<Counted>,
}

impl BatchTimes {
    pub(crate) const fn new(times: Arc<StoredTimes>, sink: SinkName) -> Self {
        Self { times, sink, slots: Vec::new(), touched: Vec::new() }
    }

    /// Counts an event of the type of a slot, and its age in microseconds.
    pub(crate) fn count(&mut self, slot: usize, type_name: &TypeName, age: i64) {
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        let (times, sink) = (&self.times, &self.sink);
        let slot_of = || Slot { shared: times.of(type_name, sink), counted: Box::default() };
        let found = self.slots[slot].get_or_insert_with(slot_of);
        if found.counted.events == 0 {
            self.touched.push(slot);
        }
        found.counted.add(age, 1);
    }

    /// Adds the counted events to the shared cells.
    pub(crate) fn flush(&mut self) {
        for slot in self.touched.drain(..) {
            if let Some(Slot { shared, counted }) = &mut self.slots[slot] {
                std::mem::take(&mut **counted).flush(shared);
            }
        }
    }
}

/// Ages of events in plain cells.
#[derive(Default)]
struct Counted {
    buckets: Buckets,
    sum: u64,
    events: u64,
}

impl Counted {
    /// The clock may have been set back since the receipt.
    fn add(&mut self, age: i64, events: u64) {
        let age = u64::try_from(age).unwrap_or(0);
        self.buckets[bucket_of(&BOUNDS, age)] += events;
        self.sum += age * events;
        self.events += events;
    }

    fn flush(self, shared: &SizeHistogram) {
        shared.add(&self.buckets, self.sum);
    }
}

/// When the events of an object were received, close times together: they are needed when the object is stored.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    runs: Vec<(i64, u64)>,
    /// Microseconds within which times are one.
    width: i64,
}

/// Times that are kept apart.
const RUNS_MAX: usize = 1_024;
/// Microseconds that make no difference.
const WIDTH_MIN: i64 = 10_000;

impl Receipts {
    pub(crate) fn add(&mut self, received_at: i64) {
        self.add_run(received_at, 1);
        if self.runs.len() > RUNS_MAX {
            self.width = self.width.max(WIDTH_MIN).saturating_mul(2);
            let runs = std::mem::take(&mut self.runs);
            runs.into_iter().for_each(|(at, events)| self.add_run(at, events));
        }
    }

    fn add_run(&mut self, at: i64, events: u64) {
        match self.runs.last_mut() {
            Some((first, count)) if at.abs_diff(*first) <= self.width.max(WIDTH_MIN).unsigned_abs() => *count += events,
            _ => self.runs.push((at, events)),
        }
    }

    /// The ages at `now`, and how many events have each.
    pub(crate) fn ages(&self, now: i64) -> impl Iterator<Item = (i64, u64)> {
        self.runs.iter().map(move |(at, events)| (now.saturating_sub(*at), *events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    fn counts(times: &StoredTimes, type_name: &str, sink: &str) -> (u64, u64) {
        let all = times.snapshots();
        let found = all.iter().find(|((of, to), _)| of.as_str() == type_name && **to == *sink);
        found.map_or((0, 0), |(_, times)| (times.buckets.iter().sum(), times.sum))
    }

    #[test]
    fn batch_is_counted_when_it_has_ended() {
        let times = Arc::new(StoredTimes::default());
        let mut batch = BatchTimes::new(times.clone(), "local".into());
        for age in [900, 1_000, 1_001, -5] {
            batch.count(3, &name("orders"), age);
        }
        assert_eq!(counts(&times, "orders", "local"), (0, 0));
        batch.flush();
        assert_eq!(counts(&times, "orders", "local"), (4, 2_901));
        assert_eq!(times.snapshots()[0].1.buckets[..3], [3, 1, 0]);
        batch.flush();
        batch.count(3, &name("orders"), i64::MAX / 4);
        batch.flush();
        assert_eq!(times.snapshots()[0].1.buckets[metrics::BOUNDED_BUCKETS], 1, "once");
    }

    #[test]
    fn pairs_beyond_the_bound_are_others_of_their_sink() {
        let times = Arc::new(StoredTimes::default());
        let add = |type_name: &str, sink: &str| times.add(&name(type_name), &sink.into(), [(5, 2)].into_iter());
        (0..1_500).for_each(|number| add(&format!("type-{number}"), "local"));
        add("type-1499", "archive");
        add("type-7", "local");
        assert_eq!(times.snapshots().len(), PAIRS_MAX + 2);
        assert_eq!(counts(&times, OTHER, "local").0, 2 * 500);
        assert_eq!(counts(&times, OTHER, "archive").0, 2);
        assert_eq!(counts(&times, "type-7", "local").0, 4);
        add(OTHER, "local");
        assert_eq!(counts(&times, OTHER, "local").0, 2 * 501, "a type of that name shares the cells");
    }

    #[test]
    fn receipts_of_many_times_are_bounded_and_complete() {
        let mut receipts = Receipts::default();
        let day = 24 * 3600 * 1_000_000_i64;
        (0..100_000).for_each(|event| receipts.add(event * (day / 100_000)));
        assert!(receipts.runs.len() <= RUNS_MAX, "{}", receipts.runs.len());
        assert_eq!(receipts.ages(day).map(|(_, events)| events).sum::<u64>(), 100_000);
        let mut equal = Receipts::default();
        (0..5).for_each(|_| equal.add(7));
        assert_eq!(equal.ages(10).collect::<Vec<_>>(), [(3, 5)]);
    }
}
