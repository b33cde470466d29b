//! The memory of `dedupe`: the values that it has seen recently, up to its limit.
//!
//! A value is kept only when its event is stored. Until then only its own request sees it: an event that was never
//! stored can't cause others to be dropped. If an event turns out later not to be stored, its values are unknown. Then
//! an epoch ends, and no request sees values that were kept by requests of an earlier epoch.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// How much later than a request a value may have been seen, in microseconds. Requests are dated when their heads
/// arrive, and bodies may take longer. A value with a later time was dated by a clock that has been set back since: it
/// would expire only when the clock reaches that time again.
const AHEAD_MAX: i64 = 60_000_000;

/// The memory of the steps of one transform as one request sees it: the kept values, and those of this request's
/// events.
#[derive(Debug, Default)]
pub struct Windows {
    kept: Option<Arc<Kept>>,
    /// The epoch in which the request began.
    epoch: u64,
    /// Values of this request, in their order.
    own: Vec<Seen>,
    own_keys: HashSet<(usize, u128)>,
    /// Whether one of them was seen again since the last [`Windows::take_own_duplicate`].
    has_repeated: bool,
}

/// A moment in the life of [`Windows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowMark(usize);

/// The duration, and the number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) microseconds: i64,
    pub(super) values: usize,
}

/// The part that all requests see. A lock is held for one value.
#[derive(Debug)]
struct Kept {
    seed: u64,
    windows: Vec<Arc<Mutex<Window>>>,
}

#[derive(Debug)]
struct Window {
    bounds: Bounds,
    /// When each was seen, and in which epoch.
    seen: HashMap<u128, (i64, u64)>,
    /// The values in order of their times. A value that was seen again after it expired is here twice.
    order: VecDeque<(u128, i64)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    window: usize,
    key: u128,
    at: i64,
}

impl Windows {
    /// `seed` must be random: a client that knows it can construct values with the same hash.
    pub(super) fn new(seed: u64, bounds: impl Iterator<Item = Bounds>) -> Self {
        let window = |bounds| Arc::new(Mutex::new(Window { bounds, seen: HashMap::new(), order: VecDeque::new() }));
        let windows: Vec<_> = bounds.map(window).collect();
        // Most transforms have no window: theirs cost no allocation, however often they are created.
        let kept = (!windows.is_empty()).then(|| Arc::new(Kept { seed, windows }));
        Self { kept, ..Self::default() }
    }

    /// The same for another request, which begins in this epoch.
    #[must_use]
    pub fn for_request(&self, epoch: u64) -> Self {
        Self { kept: self.kept.clone(), epoch, ..Self::default() }
    }

    /// These windows, sharing the first `count` with `before`: a value that one sees from now on, the other sees too.
    #[must_use]
    pub fn sharing(&self, before: &Self, count: usize) -> Self {
        let (Some(own), Some(known)) = (&self.kept, &before.kept) else { return self.for_request(self.epoch) };
        let shared = known.windows.iter().take(count);
        let windows = shared.chain(own.windows.iter().skip(count)).take(own.windows.len()).cloned().collect();
        // Values are known by their hashes: earlier values are found only with the earlier seed.
        Self { kept: Some(Arc::new(Kept { seed: known.seed, windows })), ..Self::default() }
    }

    /// Whether, since the last call, a value was a duplicate of one in this request.
    pub const fn take_own_duplicate(&mut self) -> bool {
        std::mem::replace(&mut self.has_repeated, false)
    }

    /// The current length of this request's memory.
    #[must_use]
    pub const fn mark(&self) -> WindowMark {
        WindowMark(self.own.len())
    }

    /// Forgets the values of this request since then.
    pub fn forget_since(&mut self, mark: WindowMark) {
        for seen in self.own.split_off(mark.0.min(self.own.len())) {
            self.own_keys.remove(&(seen.window, seen.key));
        }
    }

    /// The events of this request are stored, or will be if any is: all requests see their values.
    pub fn keep(&mut self) {
        for Seen { window, key, at } in self.own.drain(..) {
            let kept = self.kept.as_ref().and_then(|kept| kept.window(window));
            kept.into_iter().for_each(|mut window| window.keep(key, (at, self.epoch)));
        }
        self.own_keys.clear();
    }

    /// Records a value, and returns whether the window had it already. Without a window of that number, as in a state
    /// of another transform, no value was seen.
    pub(super) fn record_value(&mut self, window: usize, value: &str, now: i64) -> bool {
        let Some(all) = &self.kept else { return false };
        let key = xxh3_128_with_seed(value.as_bytes(), all.seed);
        let Some(kept) = all.window(window) else { return false };
        if kept.has(key, (now, self.epoch)) {
            return true;
        }
        if !self.own_keys.insert((window, key)) {
            self.has_repeated = true;
            return true;
        }
        drop(kept);
        self.own.push(Seen { window, key, at: now });
        false
    }
}

impl Kept {
    fn window(&self, number: usize) -> Option<MutexGuard<'_, Window>> {
        self.windows.get(number).map(|window| window.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Window {
    fn has(&self, key: u128, (now, epoch): (i64, u64)) -> bool {
        self.seen.get(&key).is_some_and(|(at, kept_in)| self.holds(*at, now) && *kept_in == epoch)
    }

    /// Whether a value of this time and epoch still counts.
    const fn holds(&self, at: i64, now: i64) -> bool {
        self.oldest(now) <= at && at <= now.saturating_add(AHEAD_MAX)
    }

    const fn oldest(&self, now: i64) -> i64 {
        now.saturating_sub(self.bounds.microseconds)
    }

    fn keep(&mut self, key: u128, (at, epoch): (i64, u64)) {
        let oldest = self.oldest(at);
        while self.order.front().is_some_and(|(_, seen)| *seen < oldest) {
            self.forget_first();
        }
        let is_known = self.seen.get(&key).is_some_and(|(seen, kept_in)| self.holds(*seen, at) && *kept_in >= epoch);
        if is_known {
            return;
        }
        while self.order.len() >= self.bounds.values {
            self.forget_first();
        }
        self.seen.insert(key, (at, epoch));
        self.order.push_back((key, at));
    }

    fn forget_first(&mut self) {
        let Some((key, at)) = self.order.pop_front() else { return };
        if self.seen.get(&key).is_some_and(|(seen, _)| *seen == at) {
            self.seen.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(values: usize) -> Windows {
        Windows::new(7, [Bounds { microseconds: 100, values }].into_iter())
    }

    #[test]
    fn value_is_seen_until_it_expires() {
        let mut windows = windows(10);
        assert!(!windows.record_value(0, "a", 0));
        windows.keep();
        assert!(windows.record_value(0, "a", 100));
        assert!(!windows.record_value(0, "a", 101), "the first time counts, or it would never end");
        windows.keep();
        assert!(windows.record_value(0, "a", 201));
        assert!(!windows.record_value(1, "a", 101), "no such window");
    }

    #[test]
    fn clock_change_drops_nothing_beyond_the_window() {
        let hour = 3_600_000_000;
        let all = windows(10);
        let stored = |now| {
            let mut request = all.for_request(0);
            let is_new = !request.record_value(0, "a", now);
            request.keep();
            is_new
        };
        assert!(stored(hour));
        assert!(stored(0), "set back: by its time it would be dropped for an hour");
        assert!(!stored(0) && !stored(100), "it has a new time");
        assert!(stored(101) && !stored(201));
        assert!(stored(hour + 1), "and set ahead again: its first time is forgotten");
        assert!(!stored(hour + 101));
    }

    #[test]
    fn slow_request_sees_later_values() {
        let mut windows = windows(10);
        assert!(!windows.record_value(0, "a", AHEAD_MAX));
        windows.keep();
        assert!(windows.record_value(0, "a", 0));
        assert!(!windows.record_value(0, "a", -1));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut windows = windows(2);
        for value in ["a", "b", "c"] {
            assert!(!windows.record_value(0, value, 0));
            windows.keep();
        }
        assert!(windows.record_value(0, "c", 0) && windows.record_value(0, "b", 0));
        assert!(!windows.record_value(0, "a", 0));
    }

    #[test]
    fn values_since_a_mark_can_be_forgotten() {
        let mut windows = windows(10);
        windows.record_value(0, "a", 0);
        let mark = windows.mark();
        windows.record_value(0, "b", 0);
        windows.forget_since(mark);
        assert!(windows.record_value(0, "a", 0));
        assert!(!windows.record_value(0, "b", 0));
    }

    #[test]
    fn windows_can_be_shared_with_their_successors() {
        let two = |seed| Windows::new(seed, [Bounds { microseconds: 100, values: 9 }; 2].into_iter());
        let mut before = two(7);
        assert!(!before.record_value(0, "a", 0) && !before.record_value(1, "b", 0));
        before.keep();
        let mut after = two(8).sharing(&before, 1);
        assert!(after.record_value(0, "a", 0));
        assert!(!after.record_value(1, "b", 0), "the second is new");
        after.record_value(0, "c", 0);
        after.keep();
        assert!(before.record_value(0, "c", 0), "a request with the earlier windows sees it too");
        assert!(!before.record_value(1, "c", 0));
        assert!(!windows(9).sharing(&Windows::default(), 1).record_value(0, "a", 0));
    }

    #[test]
    fn other_requests_see_only_kept_values() {
        let mut first = windows(10);
        let mut second = first.for_request(0);
        assert!(!first.record_value(0, "a", 0));
        assert!(!second.record_value(0, "a", 0), "the first may still be rejected");
        first.keep();
        assert!(first.for_request(0).record_value(0, "a", 0));
    }

    #[test]
    fn value_of_an_earlier_epoch_is_unknown() {
        let all = windows(10);
        let [mut late, mut other] = [4, 4].map(|epoch| all.for_request(epoch));
        assert!(!late.record_value(0, "a", 0) && !other.record_value(0, "b", 0));
        late.keep();
        assert!(
            !all.for_request(5).record_value(0, "a", 0),
            "kept when its epoch had ended already, or shortly before"
        );
        assert!(all.for_request(4).record_value(0, "a", 0), "a request that began in it will learn that it has ended");
        let mut next = all.for_request(5);
        assert!(!next.record_value(0, "b", 0));
        next.keep();
        other.keep();
        assert!(all.for_request(5).record_value(0, "b", 0), "a late request removes nothing");
    }
}
