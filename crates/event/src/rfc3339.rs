//! Times as people write them (RFC 3339) and as events have them: microseconds since 1970, UTC.

use crate::calendar::{Civil, SECOND, second_of_day};

const WANTED: &str = "wanted a time such as 2026-11-21T13:00:00Z or 2026-11-21T14:00:00+01:00";
/// The beginning of the year 0 and the end of the year 9999.
const FIRST: i64 = -62_167_219_200 * SECOND;
const LAST: i64 = 253_402_300_800 * SECOND - 1;
const MINUTE: i64 = 60 * SECOND;
/// Bytes of a time as it is written.
const TEXT_BYTES: usize = 27;

/// Reads a time. A leap second counts as the one before.
///
/// # Errors
/// What was wanted instead.
pub fn parse(text: &str) -> Result<i64, String> {
    let (local, offset) = split_offset(text).ok_or(WANTED)?;
    Ok(local_time(local).ok_or(WANTED)? - offset * MINUTE)
}

/// A date and a time of day, without an offset.
fn local_time(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
    let (time, fraction) = time.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [hour, minute, second] = numbers(time, b':', [2, 2, 2])?;
    let civil = Civil::new(year, month, day, second_of_day(hour, minute, second)?)?;
    Some(civil.time() + microseconds(fraction)?)
}

/// Numbers of so many digits each, with a byte between them.
fn numbers(text: &str, between: u8, digits: [usize; 3]) -> Option<[i64; 3]> {
    let (mut values, mut rest) = ([0; 3], text.as_bytes());
    for (at, (value, count)) in values.iter_mut().zip(digits).enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(&[between])?;
        }
        let (number, behind) = rest.split_at_checked(count)?;
        *value = number
            .iter()
            .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))?;
        rest = behind;
    }
    rest.is_empty().then_some(values)
}

/// What stands behind the seconds: nothing, or a point and digits, of which six count.
fn microseconds(fraction: &str) -> Option<i64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = fraction.strip_prefix('.').filter(|digits| !digits.is_empty())?.as_bytes();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |digit| i64::from(digit - b'0'));
    Some((0..6).fold(0, |value, at| value * 10 + digit(at)))
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
    String::from_utf8_lossy(&text(microseconds)).into_owned()
}

/// The same without memory of its own, for who writes many: ASCII letters.
#[must_use]
pub fn text(microseconds: i64) -> [u8; TEXT_BYTES] {
    let civil = Civil::of(microseconds.clamp(FIRST, LAST));
    let (Civil { year, month, day, microsecond, .. }, (hour, minute, second)) = (civil, civil.clock());
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
        assert_eq!(format(i64::MIN), "0000-01-01T00:00:00.000000Z");
    }

    #[test]
    fn what_was_before_1970_is_a_time_too() {
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
        let days = (FIRST / DAY..=LAST / DAY).step_by(17).chain([-1, 0, 59, 60, 11_016, 11_017]);
        for day in days {
            let time = day * DAY + 47 * MINUTE + 3;
            assert_eq!(parse(&format(time)), Ok(time), "{}", format(time));
        }
        assert_eq!(format(951_782_400 * SECOND), "2000-02-29T00:00:00.000000Z");
    }
}
