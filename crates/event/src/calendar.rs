//! Days of the Gregorian calendar as numbers, and back, after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years
//! begin in March there, so that the day that not every year has is a year's last, and eras have 400 years.

/// Days from the first of March of the year 0 to 1970.
const EPOCH: i64 = 719_468;
const DAYS_OF_AN_ERA: i64 = 146_097;

/// How many days a month (1 to 12) has.
#[must_use]
pub const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The number of a day: 0 is the first of 1970. The month is 1 to 12, the day one that it has.
const fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - (month <= 2) as i64;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_AN_ERA + day_of_era - EPOCH
}

/// Year, month and day of a day's number.
const fn date_of(number: i64) -> (i64, i64, i64) {
    let (era, day_of_era) = ((number + EPOCH).div_euclid(DAYS_OF_AN_ERA), (number + EPOCH).rem_euclid(DAYS_OF_AN_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
/// The times of the years 0 to 9999, which every format can say: microseconds since 1970, UTC.
pub const TIMES: std::ops::RangeInclusive<i64> = -62_167_219_200 * SECOND..=253_402_300_799 * SECOND + 999_999;
const DAY: i64 = 86_400;

/// A date of the years 0 to 9999 and what the clock shows on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// The second of the day.
    pub second: i64,
    /// The microsecond of the second.
    pub microsecond: i64,
}

impl Civil {
    /// `None` if there is no such day.
    #[must_use]
    pub fn new(year: i64, month: i64, day: i64, second: i64) -> Option<Self> {
        let is_date = (0..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1;
        (is_date && day <= days_in(year, month)).then_some(Self { year, month, day, second, microsecond: 0 })
    }

    /// The day of a year with its number, from 1.
    #[must_use]
    pub fn of_day(year: i64, number: i64, second: i64) -> Option<Self> {
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

    /// The date and clock of microseconds since 1970.
    #[must_use]
    pub const fn of(time: i64) -> Self {
        let (seconds, microsecond) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
        let (year, month, day) = date_of(seconds.div_euclid(DAY));
        Self { year, month, day, second: seconds.rem_euclid(DAY), microsecond }
    }

    /// Hour, minute and second of the minute.
    #[must_use]
    pub const fn clock(&self) -> (i64, i64, i64) {
        (self.second / 3600, self.second / 60 % 60, self.second % 60)
    }

    /// Microseconds since 1970.
    #[must_use]
    pub const fn time(&self) -> i64 {
        let days = day_number(self.year, self.month, self.day);
        (days * DAY + self.second) * SECOND + self.microsecond
    }
}

/// The second of the day. A leap second, the sixtieth of a minute, counts as the one before, so that it stays in its day.
#[must_use]
pub fn second_of_day(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let is_clock = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    is_clock.then_some(hour * 3600 + minute * 60 + if second < 60 { second } else { 59 })
}
