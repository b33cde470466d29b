//! Times as text (RFC 3339) and as in events: microseconds since 1970, UTC.

use std::ops::Range;

use crate::calendar::{MINUTE, SECOND, civil, date, microseconds, second_of_day};
use crate::time_fields::{digits, fraction, offset};

const WANTED: &str = "expected a time such as 2026-11-21T13:00:00Z or 2026-11-21T14:00:00+01:00";
/// Bytes of a time as text.
const TEXT_BYTES: usize = 27;

/// Reads a time of RFC 3339. A leap second counts as the one before.
///
/// # Errors
/// The expected format.
pub fn parse(text: &str) -> Result<i64, String> {
    let (local, offset) = split_offset(text).ok_or(WANTED)?;
    match parse_lenient(local) {
        Some((time, None)) if is_complete(local) => Ok(time - offset * MINUTE),
        _ => Err(WANTED.to_owned()),
    }
}

/// Reads RFC 3339, and the forms that ISO 8601 allows in addition: a date alone, no seconds, a comma before the
/// fraction, a blank for the `T`, no offset, or one without its colon or its minutes. Returns the local time, and the
/// minutes of its offset from UTC.
#[must_use]
pub fn parse_lenient(text: &str) -> Option<(i64, Option<i64>)> {
    let (day, rest) = text.split_at_checked(10)?;
    if day.as_bytes()[4] != b'-' || day.as_bytes()[7] != b'-' {
        return None;
    }
    let number = |range: Range<usize>| day.get(range).and_then(digits);
    let day = date(number(0..4)?, number(5..7)?, number(8..10)?)?;
    if rest.is_empty() {
        return Some((microseconds(day, 0), None));
    }
    let (hour_and_minute, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(5)?;
    let (hour, minute) = hour_and_minute.split_once(':')?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => rest.split_at_checked(2)?,
        None => ("0", rest),
    };
    let (fraction, rest) = fraction(rest);
    let second = second_of_day(digits(hour)?, digits(minute)?, digits(second)?)?;
    let local = microseconds(day, second) + fraction;
    match rest.trim_start() {
        "" => Some((local, None)),
        rest => offset(rest).filter(|(_, rest)| rest.is_empty()).map(|(minutes, _)| (local, Some(minutes))),
    }
}

/// Whether a text that [`parse_lenient`] reads has a date and a time of day in RFC 3339's form.
fn is_complete(local: &str) -> bool {
    let has_colon = |at| local.as_bytes().get(at) == Some(&b':');
    has_colon(13) && has_colon(16) && !local.contains(',') && local.ends_with(|last: char| last.is_ascii_digit())
}

/// The local time, and its offset in minutes.
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

/// Writes a time, in UTC. One that the format can't express becomes the nearest.
#[must_use]
pub fn format(microseconds: i64) -> String {
    String::from_utf8_lossy(&text(microseconds)).into_owned()
}

/// The same without allocated memory, for callers that write many: ASCII.
#[must_use]
pub fn text(microseconds: i64) -> [u8; TEXT_BYTES] {
    let (date, second, microsecond) = civil(microseconds);
    let (year, month, day) = (date.year().into(), date.month().into(), date.day().into());
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text: [u8; TEXT_BYTES] = *b"0000-00-00T00:00:00.000000Z";
    for (end, number) in [(4, year), (7, month), (10, day), (13, hour), (16, minute), (19, second), (26, microsecond)] {
        put_before(&mut text[..end], number);
    }
    text
}

/// Writes a number over the digits that `text` ends with: stores write a time for each event, and need no formatting for it.
fn put_before(text: &mut [u8], mut number: i64) {
    for place in text.iter_mut().rev().take_while(|place| place.is_ascii_digit()) {
        *place = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// The same with only as many digits of a second as the time has: none, three or six.
#[must_use]
pub fn format_short(microseconds: i64) -> String {
    let mut text = format(microseconds);
    let end = match microseconds.rem_euclid(SECOND) {
        0 => 19,
        fraction if fraction % 1_000 == 0 => 23,
        _ => 26,
    };
    text.truncate(end);
    text + "Z"
}

/// The day (`2026-11-21`) and the hour (`13`) of a time, in UTC, as names have them.
#[must_use]
pub fn day_and_hour(microseconds: i64) -> (String, String) {
    let text = format(microseconds);
    let part = |range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    (part(0..10), part(11..13))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::TIMES;

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
        assert_eq!(format(i64::MIN), "0000-01-01T00:00:00.000000Z");
    }

    #[test]
    fn times_before_1970_are_valid() {
        assert_eq!(parse("1969-12-31T23:59:59.999999Z"), Ok(-1));
        assert_eq!(parse("0001-01-01T00:00:00Z"), Ok(-62_135_596_800 * SECOND));
        assert_eq!(parse("2026-11-21t13:00:00z"), parse("2026-11-21T13:00:00Z"));
        assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2016-12-31T23:59:59Z"), "a leap second");
        assert_eq!(parse("2026-11-21T13:00:00.1234567Z"), Ok(1_795_266_000_123_456));
        let wrong = [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1xZ",
            "2026-1-01T00:00:00Z",
            "2026-01-01T00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:0é",
        ];
        assert!(wrong.into_iter().all(|text| parse(text).is_err()));
    }

    #[test]
    fn every_day_is_read_as_it_is_written() {
        const DAY: i64 = 24 * 60 * MINUTE;
        let days = (TIMES.start() / DAY..=TIMES.end() / DAY).step_by(17).chain([-1, 0, 59, 60, 11_016, 11_017]);
        for day in days {
            let time = day * DAY + 47 * MINUTE + 3;
            assert_eq!(parse(&format(time)), Ok(time), "{}", format(time));
        }
        assert_eq!(format(951_782_400 * SECOND), "2000-02-29T00:00:00.000000Z");
    }

    /// Random texts and the times that the parsers of the first releases read in them: as RFC 3339, and leniently with UTC for a text without
    /// an offset. `{day}` in the name of an object follows from them.
    #[test]
    fn texts_keep_the_times_of_earlier_parsers() {
        for line in include_str!("rfc3339/verdicts.txt").lines() {
            let [text, strict, lenient, offset] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            assert_eq!(parse(text).ok(), strict.parse().ok(), "{text}");
            let read = parse_lenient(text).map(|(local, offset)| (local - offset.unwrap_or(0) * MINUTE, offset));
            let read = read.filter(|(time, _)| TIMES.contains(time));
            assert_eq!(read.map(|(time, _)| time), lenient.parse().ok(), "{text}");
            assert_eq!(read.and_then(|(_, offset)| offset).is_some(), offset == "offset", "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_written(time in TIMES, unit in prop::sample::select(vec![1, 1_000, SECOND])) {
            let time = time / unit * unit;
            prop_assert_eq!(parse(&format(time)), Ok(time));
            prop_assert_eq!(parse(&format_short(time)), Ok(time));
        }

        #[test]
        fn offset_shifts_the_time(time in TIMES, hours in 0..24_i64, minutes in 0..60_i64) {
            let (local, offset) = (format(time), hours * 60 + minutes);
            let local = local.trim_end_matches('Z');
            for (sign, shift) in [('+', -offset), ('-', offset)] {
                let text = format!("{local}{sign}{hours:02}:{minutes:02}");
                prop_assert_eq!(parse(&text), Ok(time + shift * MINUTE));
                prop_assert_eq!(parse_lenient(&text), Some((time, Some(-shift))));
            }
        }

        #[test]
        fn no_text_panics(text in "([0-9:. TZ+-]|\\PC){0,32}") {
            let _ = (parse(&text), parse_lenient(&text));
        }
    }
}
