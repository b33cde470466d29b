//! Days of the Gregorian calendar as numbers, and back.

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
        // Years begin in March here, so that the day that not every year has is a year's last; eras have 400 years.
        let from_era = days + 719_468;
        let (era, day_of_era) = (from_era.div_euclid(146_097), from_era.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month, day, second, microsecond }
    }

    /// Microseconds since 1970.
    pub(in crate::transform) const fn time(&self) -> i64 {
        let year = self.year - (self.month <= 2) as i64;
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * 146_097 + day_of_era - 719_468;
        (days * DAY + self.second) * SECOND + self.microsecond
    }
}

/// The second of the day. The sixtieth second of a minute, which a leap second is, is the first of the next.
pub(super) fn seconds(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let is_clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_clock.then_some(hour * 3600 + minute * 60 + second)
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
