//! Times as people write them (RFC 3339) and as events have them: microseconds since 1970, UTC.

use std::time::{Duration, SystemTime};

const WANTED: &str = "wanted a time such as 2026-11-21T13:00:00Z or 2026-11-21T14:00:00+01:00";
/// The end of the year 9999.
const LAST: i64 = 253_402_300_799_999_999;
const MINUTE: i64 = 60 * 1_000_000;

/// Reads a time.
///
/// # Errors
/// What was wanted instead.
pub fn parse(text: &str) -> Result<i64, String> {
    let (local, offset) = split_offset(text).ok_or(WANTED)?;
    let time = humantime::parse_rfc3339(&format!("{local}Z")).map_err(|_| WANTED)?;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| WANTED)?;
    let microseconds = i64::try_from(since.as_micros()).map_err(|_| WANTED)?;
    Ok(microseconds - offset * MINUTE)
}

/// The time without its offset, and that in minutes.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let number = |digits: &str, below: i64| digits.parse().ok().filter(|number| (0..below).contains(number));
    let minutes = number(hours, 24)? * 60 + number(minutes, 60)?;
    match offset.as_bytes().first()? {
        b'+' => Some((local, minutes)),
        b'-' => Some((local, -minutes)),
        _ => None,
    }
}

/// Writes a time, in UTC. One that no such text can say becomes the nearest that can be said.
#[must_use]
pub fn format(microseconds: i64) -> String {
    let since = Duration::from_micros(u64::try_from(microseconds.min(LAST)).unwrap_or(0));
    humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + since).to_string()
}

/// The day (`2026-11-21`) and the hour (`13`) of a time, in UTC, as names have them.
#[must_use]
pub fn day_and_hour(microseconds: i64) -> (String, String) {
    let text = format(microseconds);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    (part(0..10), part(11..13))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_offsets() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Ok(1_000_000));
        assert_eq!(parse("1970-01-01T02:00:00.5+01:30"), Ok(30 * MINUTE + 500_000));
        assert_eq!(parse("1970-01-01T00:00:00-01:00"), Ok(60 * MINUTE));
        for wrong in ["", "yesterday", "2026-11-21", "2026-11-21T00:00:00", "2026-11-21T00:00:00+24:00", "é+01:00"] {
            assert_eq!(parse(wrong), Err(WANTED.to_owned()), "{wrong}");
        }
        assert_eq!(day_and_hour(25 * 60 * MINUTE), ("1970-01-02".to_owned(), "01".to_owned()));
        assert_eq!(format(1_000_001), "1970-01-01T00:00:01.000001Z");
        assert_eq!(format(i64::MAX), "9999-12-31T23:59:59.999999Z");
        assert_eq!(format(i64::MIN), "1970-01-01T00:00:00.000000Z");
    }
}
