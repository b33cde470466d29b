//! Windows in their textual form, and which of them contain a moment: `1m`, `5m every 1m`, `session 30m`.

use std::time::Duration;

use limits::{AGGREGATE_OVERLAP_MAX, AGGREGATE_WINDOW_MAX, AGGREGATE_WINDOW_MIN};

/// The windows of an aggregate. Times are microseconds since 1970, UTC; a window contains its start and not its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// One of `size` every `hop`, each start a multiple of `hop`; with both the same, one follows the other.
    TimeWindows { size: i64, hop: i64 },
    /// A group's events, of which each is less than `gap` from the next one.
    Session { gap: i64 },
}

impl Span {
    /// Parses windows, or says what is wrong with them.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(gap) = text.strip_prefix("session ") {
            return Ok(Self::Session { gap: length(gap)? });
        }
        let (size, hop) = text.split_once(" every ").unwrap_or((text, text));
        let (size, hop) = (length(size)?, length(hop)?);
        if hop > size {
            return Err("windows shorter than their interval leave events out: make them at least as long".into());
        }
        if (size - 1) / hop >= AGGREGATE_OVERLAP_MAX {
            return Err(format!(
                "each event would be in more than {AGGREGATE_OVERLAP_MAX} windows: use a longer interval"
            ));
        }
        Ok(Self::TimeWindows { size, hop })
    }
}

fn length(text: &str) -> Result<i64, String> {
    const WANTED: &str = "expected a length such as `1m`, `5m every 1m` or `session 30m`";
    let length = text::duration::parse(text.trim()).map_err(|error| format!("`{text}`: {error}; {WANTED}"))?;
    if !(AGGREGATE_WINDOW_MIN..=AGGREGATE_WINDOW_MAX).contains(&length) {
        let (min, max) = (AGGREGATE_WINDOW_MIN, AGGREGATE_WINDOW_MAX);
        let (min, max) = (humantime::format_duration(min), humantime::format_duration(max));
        return Err(format!("`{text}` is out of range: a window is {min} to {max} long"));
    }
    Ok(microseconds(length))
}

/// A length that is limited to far below the range of an `i64`.
pub(super) fn microseconds(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 4)
}

/// The starts of the windows of `size` every `hop` that hold `time`, the latest first.
pub(super) fn starts(size: i64, hop: i64, time: i64) -> impl Iterator<Item = i64> {
    let latest = time - time.rem_euclid(hop);
    std::iter::successors(Some(latest), move |start| Some(start - hop)).take_while(move |start| start + size > time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn windows_are_read() {
        let minute = 60 * SECOND;
        for (text, span) in [
            ("1m", Span::TimeWindows { size: minute, hop: minute }),
            ("1h 30m", Span::TimeWindows { size: 90 * minute, hop: 90 * minute }),
            ("5m every 1m", Span::TimeWindows { size: 5 * minute, hop: minute }),
            ("session 30m", Span::Session { gap: 30 * minute }),
        ] {
            assert_eq!(Span::parse(text), Ok(span), "{text}");
        }
        for (text, said) in [
            ("", "such as `1m`"),
            ("5", "such as `1m`"),
            ("session", "such as `1m`"),
            ("0s", "100ms"),
            ("4000d", "1year 18h"),
            ("1M", "aren't all of one length"),
            ("99999999999999999999w", "such as `1m`"),
            ("1m every 2m", "leave events out"),
            ("1h every 1s", "more than 100 windows"),
        ] {
            let error = Span::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn starts_cover_all_windows_of_a_moment(hop in 1_i64..50, more in 0_i64..100, time in -1_000_i64..1_000) {
            let size = hop + more;
            let found: Vec<i64> = starts(size, hop, time).collect();
            let holds = |start: &i64| start.rem_euclid(hop) == 0 && *start <= time && time < start + size;
            let all: Vec<i64> = (-1_200..1_001).filter(holds).rev().collect();
            prop_assert_eq!(found, all);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}|session .{0,10}|[0-9]{1,25}[a-z]{1,6} every [0-9]{1,25}[a-z]{1,6}") {
            let _ = Span::parse(&text);
        }
    }
}
