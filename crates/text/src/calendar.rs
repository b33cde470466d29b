//! The Gregorian calendar of the years 0 to 9999, and microseconds since 1970 (UTC). Only this file uses jiff's core
//! for the calendar.

use std::ops::RangeInclusive;

use jiff_core::civil::UnixEpochDay;

pub use jiff_core::civil::Date;

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// The times of the years 0 to 9999, which every format can express: microseconds since 1970, UTC.
pub const TIMES: RangeInclusive<i64> = -62_167_219_200 * SECOND..=253_402_300_799 * SECOND + 999_999;

const DAY_SECONDS: i64 = 86_400;

/// The date with these numbers; `None` if the calendar of the years 0 to 9999 has none.
#[must_use]
pub fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let year = i16::try_from(year).ok().filter(|year| *year >= 0)?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// The day of a year with its number, from 1.
#[must_use]
pub fn day_of_year(year: i64, number: i64) -> Option<Date> {
    let year = i16::try_from(year).ok().filter(|year| *year >= 0)?;
    Date::from_day_of_year(year, i16::try_from(number).ok()?).ok()
}

/// The second of the day. A leap second, the sixtieth of a minute, counts as the one before, so it stays in its day.
#[must_use]
pub fn second_of_day(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let is_clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_clock.then_some(hour * 3600 + minute * 60 + if second < 60 { second } else { 59 })
}

/// Microseconds since 1970 of a second of a day.
#[must_use]
pub fn microseconds(date: Date, second: i64) -> i64 {
    (i64::from(date.to_unix_epoch_day().day()) * DAY_SECONDS + second) * SECOND
}

/// The date, the second of the day and the microsecond of the second at a time. One outside of [`TIMES`] becomes the nearest in it.
#[must_use]
pub fn civil(time: i64) -> (Date, i64, i64) {
    let time = time.clamp(*TIMES.start(), *TIMES.end());
    let (seconds, microsecond) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
    let day = i32::try_from(seconds.div_euclid(DAY_SECONDS)).ok().and_then(|day| UnixEpochDay::new(day).ok());
    (day.unwrap_or(UnixEpochDay::MAX).to_date(), seconds.rem_euclid(DAY_SECONDS), microsecond)
}
