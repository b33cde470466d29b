//! Which messages are written, and which are only counted. The time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use config::LogLevel;

/// Messages of one kind in one [`WINDOW`].
const MESSAGES_MAX: u32 = 20;
/// The same at the level `debug`, where most messages are about single requests and batches.
const DEBUG_MESSAGES_MAX: u32 = 1_000;
const WINDOW: Duration = Duration::from_secs(10);
/// This much of a message, without its digits, is its kind, together with its subject. The rest may be an error message.
const KIND_CHARACTERS: usize = 40;
/// Kinds that are remembered; the program has fewer.
const KINDS_MAX: usize = 500;

/// The decision on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogDecision {
    /// It is written, and this many of its kind before it weren't.
    Write { suppressed: u64 },
    /// It is only counted.
    Suppress,
}

struct Window {
    since: Instant,
    written: u32,
    suppressed: u64,
}

/// Counts messages by their kinds.
pub(super) struct Limiter {
    kinds: BTreeMap<Box<str>, Window>,
}

impl Limiter {
    pub(super) const fn new() -> Self {
        Self { kinds: BTreeMap::new() }
    }

    /// Decides on a message about `subject`, as a sink: many messages about one hide none about another.
    pub(super) fn judge<'a>(
        &mut self,
        level: LogLevel,
        message: &str,
        subject: impl Iterator<Item = &'a str>,
        now: Instant,
    ) -> LogDecision {
        if self.kinds.len() > KINDS_MAX {
            self.kinds.retain(|_, window| now.duration_since(window.since) < WINDOW);
        }
        let window =
            self.kinds.entry(kind(message, subject)).or_insert(Window { since: now, written: 0, suppressed: 0 });
        if now.duration_since(window.since) >= WINDOW {
            (window.since, window.written) = (now, 0);
        }
        let max = if level == LogLevel::Debug { DEBUG_MESSAGES_MAX } else { MESSAGES_MAX };
        if window.written >= max {
            window.suppressed += 1;
            return LogDecision::Suppress;
        }
        window.written += 1;
        LogDecision::Write { suppressed: std::mem::take(&mut window.suppressed) }
    }
}

fn kind<'a>(message: &str, subject: impl Iterator<Item = &'a str>) -> Box<str> {
    let without_digits = message.chars().filter(|character| !character.is_ascii_digit());
    let mut kind: String = without_digits.take(KIND_CHARACTERS).collect();
    for name in subject {
        kind.push('\n');
        kind += name;
    }
    kind.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_messages_are_counted_by_kind() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        let mut judge = |message: &str, seconds| {
            let subject = std::iter::once("search");
            limiter.judge(LogLevel::Info, message, subject, start + Duration::from_secs(seconds))
        };
        for number in 0..20 {
            assert_eq!(judge(&format!("lane {number} waits"), 0), LogDecision::Write { suppressed: 0 }, "{number}");
        }
        assert_eq!(judge("lane 20 waits", 9), LogDecision::Suppress);
        assert_eq!(judge("lane 21 waits", 9), LogDecision::Suppress);
        assert_eq!(judge("another kind", 9), LogDecision::Write { suppressed: 0 });
        assert_eq!(judge("lane 22 waits", 10), LogDecision::Write { suppressed: 2 });
        assert_eq!(judge("lane 23 waits", 10), LogDecision::Write { suppressed: 0 });
    }

    #[test]
    fn debug_has_room_for_single_requests() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        let mut judge = || limiter.judge(LogLevel::Debug, "request", std::iter::empty(), start);
        (0..1_000).for_each(|number| assert_eq!(judge(), LogDecision::Write { suppressed: 0 }, "{number}"));
        assert_eq!(judge(), LogDecision::Suppress);
    }

    #[test]
    fn messages_about_one_sink_suppress_none_about_another() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        let mut judge = |sink| limiter.judge(LogLevel::Info, "lane waits", std::iter::once(sink), start);
        while judge("search") != LogDecision::Suppress {}
        assert_eq!(judge("archive"), LogDecision::Write { suppressed: 0 });
    }

    #[test]
    fn kinds_are_forgotten() {
        let mut limiter = Limiter::new();
        let start = Instant::now();
        for letter in (0..2_000_u32).filter_map(|number| char::from_u32(0x4e00 + number)) {
            limiter.judge(LogLevel::Info, &letter.to_string(), std::iter::empty(), start);
        }
        limiter.judge(LogLevel::Info, "last", std::iter::empty(), start + WINDOW);
        assert_eq!(limiter.kinds.len(), 1);
    }
}
