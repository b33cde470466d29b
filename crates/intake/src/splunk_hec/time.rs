//! Times of events: seconds since 1970 with a fraction, as a number or as text.

use text::rfc3339;
use timestamp::TimeFormat;

/// The time in RFC 3339. Some senders write other units than seconds: the number of digits shows which.
pub(super) fn read(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count();
    let format = match digits {
        _ if text.get(4..5) == Some("-") => TimeFormat::Rfc3339,
        0..=11 => TimeFormat::Unix(1),
        12..=14 => TimeFormat::Unix(1_000),
        15..=17 => TimeFormat::Unix(1_000_000),
        _ => TimeFormat::Unix(1_000_000_000),
    };
    format.read(text.trim_ascii(), None).ok().map(rfc3339::format_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_any_unit() {
        for (text, expected) in [
            ("1795867200", Some("2026-11-28T12:00:00Z")),
            ("1795867200.25", Some("2026-11-28T12:00:00.250Z")),
            ("1.7958672e9", Some("2026-11-28T12:00:00Z")),
            ("1795867200123", Some("2026-11-28T12:00:00.123Z")),
            ("100000000000", Some("1973-03-03T09:46:40Z")),
            ("1795867200123456", Some("2026-11-28T12:00:00.123456Z")),
            ("1795867200123456789", Some("2026-11-28T12:00:00.123456Z")),
            ("2026-11-28T13:00:00+01:00", Some("2026-11-28T12:00:00Z")),
            ("-1.5", Some("1969-12-31T23:59:58.500Z")),
            ("", None),
            ("now", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }
}
