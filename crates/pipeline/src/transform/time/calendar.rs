//! What a clock shows on a date of the Gregorian calendar.

use event::calendar::{date_of, day_number, days_in};

use super::SECOND;

const DAY: i64 = 86_400;

/// A date and what the clock shows on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transform) struct Civil {
    pub(in crate::transform) year: i64,
    pub(in crate::transform) month: i64,
    pub(in crate::transform) day: i64,
    /// Of the day.
    pub(in crate::transform) second: i64,
    pub(in crate::transform) microsecond: i64,
}

impl Civil {
    /// None where there is no such day.
    pub(in crate::transform) fn new(year: i64, month: i64, day: i64, second: i64) -> Option<Self> {
        let is_date = (0..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1;
        (is_date && day <= days_in(year, month)).then_some(Self { year, month, day, second, microsecond: 0 })
    }

    /// The day of a year with its number, from 1.
    pub(super) fn of_day(year: i64, number: i64, second: i64) -> Option<Self> {
        let mut day = number;
        for month in 1..=12 {
            let days = days_in(year, month);
            if day <= days {
                return Self::new(year, month, day, second);
            }
            day -= days;
        }
        None
    }

    /// Of microseconds since 1970.
    pub(in crate::transform) fn of(time: i64) -> Self {
        let (seconds, microsecond) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        Self { year, month, day, second, microsecond }
    }

    /// Microseconds since 1970.
    pub(in crate::transform) const fn time(&self) -> i64 {
        let days = day_number(self.year, self.month, self.day);
        (days * DAY + self.second) * SECOND + self.microsecond
    }
}

/// The second of the day. A leap second, the sixtieth of a minute, counts as the one before, so that it stays in its day.
pub(super) fn seconds(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let is_clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_clock.then_some(hour * 3600 + minute * 60 + if second < 60 { second } else { 59 })
}
