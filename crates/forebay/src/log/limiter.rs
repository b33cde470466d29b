//! Which messages are written, and which are only counted. The time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Messages of one kind in one [`WINDOW`].
const MESSAGES_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);
/// So much of a message, without its numbers, is its kind: what stands behind is a store's words as a rule.
const KIND_BYTES: usize = 40;
/// Kinds that are remembered; the program has fewer.
const KINDS_MAX: usize = 500;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogDecision {
    /// It is written; so many of its kind were left out before it.
    Write { left_out: u64 },
    /// It is only counted.
    Suppress,
}

struct Window {
    since: Instant,
    written: u32,
    left_out: u64,
}

/// Counts messages by their kinds.
pub(super) struct Limiter {
    kinds: BTreeMap<Box<str>, Window>,
}

impl Limiter {
    pub(super) const fn new() -> Self {
        Self { kinds: BTreeMap::new() }
    }

    pub(super) fn judge(&mut self, message: &str, now: Instant) -> LogDecision {
        if self.kinds.len() > KINDS_MAX {
            self.kinds.retain(|_, window| now.duration_since(window.since) < WINDOW);
        }
        let window = self.kinds.entry(kind(message)).or_insert(Window { since: now, written: 0, left_out: 0 });
        if now.duration_since(window.since) >= WINDOW {
            (window.since, window.written) = (now, 0);
        }
        if window.written >= MESSAGES_MAX {
            window.left_out += 1;
            return LogDecision::Suppress;
        }
        window.written += 1;
        LogDecision::Write { left_out: std::mem::take(&mut window.left_out) }
    }
}

fn kind(message: &str) -> Box<str> {
    let without_numbers = message.chars().filter(|character| !character.is_ascii_digit());
    without_numbers.take(KIND_BYTES).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_thick_and_fast_is_counted_by_kind() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        let mut judge = |message: &str, seconds| limiter.judge(message, start + Duration::from_secs(seconds));
        for number in 0..20 {
            assert_eq!(judge(&format!("lane {number} waits"), 0), LogDecision::Write { left_out: 0 }, "{number}");
        }
        assert_eq!(judge("lane 20 waits", 9), LogDecision::Suppress);
        assert_eq!(judge("lane 21 waits", 9), LogDecision::Suppress);
        assert_eq!(judge("another kind", 9), LogDecision::Write { left_out: 0 });
        assert_eq!(judge("lane 22 waits", 10), LogDecision::Write { left_out: 2 });
        assert_eq!(judge("lane 23 waits", 10), LogDecision::Write { left_out: 0 });
    }

    #[test]
    fn kinds_are_forgotten() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        for letter in (0..2_000_u32).filter_map(|number| char::from_u32(0x4e00 + number)) {
            limiter.judge(&letter.to_string(), start);
        }
        limiter.judge("last", start + WINDOW);
        assert_eq!(limiter.kinds.len(), 1);
    }
}
