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
#[must_use]
pub const fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - (month <= 2) as i64;
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_AN_ERA + day_of_era - EPOCH
}

/// Year, month and day of a day's number.
#[must_use]
pub const fn date_of(number: i64) -> (i64, i64, i64) {
    let (era, day_of_era) = ((number + EPOCH).div_euclid(DAYS_OF_AN_ERA), (number + EPOCH).rem_euclid(DAYS_OF_AN_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + (month <= 2) as i64, month, day)
}
