//! What `dedupe` remembers: the values that it has seen lately, as far as it has room.
//!
//! A value is remembered only if its event goes on; whoever then can't store the event has it forgotten again, so
//! that the event isn't left out when it is sent once more.

use std::collections::{HashSet, VecDeque};

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// What the steps of one transform remember. Each shard has its own.
#[derive(Debug, Default)]
pub struct Windows {
    seed: u64,
    windows: Vec<Window>,
    /// Values remembered since the beginning.
    remembered: u64,
}

/// A moment in the life of [`Windows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// How long, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) microseconds: i64,
    pub(super) values: usize,
}

#[derive(Debug)]
struct Window {
    bounds: Bounds,
    seen: HashSet<u128>,
    /// Which came when, and its number.
    order: VecDeque<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    key: u128,
    at: i64,
    number: u64,
}

impl Windows {
    /// `seed` must be random: who knows it can make a value that is taken for another one.
    pub(super) fn new(seed: u64, bounds: impl Iterator<Item = Bounds>) -> Self {
        let window = |bounds| Window { bounds, seen: HashSet::new(), order: VecDeque::new() };
        Self { seed, windows: bounds.map(window).collect(), remembered: 0 }
    }

    /// What is remembered up to now.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        Mark(self.remembered)
    }

    /// Forgets what was remembered since.
    pub fn forget_since(&mut self, mark: Mark) {
        for window in &mut self.windows {
            while let Some(last) = window.order.back().copied().filter(|last| last.number >= mark.0) {
                window.order.pop_back();
                window.seen.remove(&last.key);
            }
        }
    }

    /// Whether a window has seen a value; now it has. Without a window of that number, as in a state of another
    /// transform, nothing was seen.
    pub(super) fn has_seen(&mut self, window: usize, value: &str, now: i64) -> bool {
        let Some(window) = self.windows.get_mut(window) else { return false };
        let key = xxh3_128_with_seed(value.as_bytes(), self.seed);
        window.forget_old(now);
        if window.seen.contains(&key) {
            return true;
        }
        window.make_room();
        window.seen.insert(key);
        window.order.push_back(Seen { key, at: now, number: self.remembered });
        self.remembered += 1;
        false
    }
}

impl Window {
    fn forget_old(&mut self, now: i64) {
        let oldest = now.saturating_sub(self.bounds.microseconds);
        while self.order.front().is_some_and(|seen| seen.at < oldest) {
            self.forget_first();
        }
    }

    fn make_room(&mut self) {
        while self.order.len() >= self.bounds.values {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(seen) = self.order.pop_front() {
            self.seen.remove(&seen.key);
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
    fn a_value_is_seen_until_its_time_is_over() {
        let mut windows = windows(10);
        assert!(!windows.has_seen(0, "a", 0));
        assert!(windows.has_seen(0, "a", 100));
        assert!(!windows.has_seen(0, "a", 101), "the first time counts, or it would never end");
        assert!(!windows.has_seen(1, "a", 101), "no such window");
    }

    #[test]
    fn the_oldest_make_room() {
        let mut windows = windows(2);
        for value in ["a", "b", "c"] {
            assert!(!windows.has_seen(0, value, 0));
        }
        assert!(windows.has_seen(0, "c", 0) && windows.has_seen(0, "b", 0));
        assert!(!windows.has_seen(0, "a", 0));
    }

    #[test]
    fn what_was_remembered_since_a_mark_can_be_forgotten() {
        let mut windows = windows(10);
        windows.has_seen(0, "a", 0);
        let mark = windows.mark();
        windows.has_seen(0, "b", 0);
        windows.forget_since(mark);
        assert!(windows.has_seen(0, "a", 0));
        assert!(!windows.has_seen(0, "b", 0));
    }
}
