//! The day or hour of events, if objects are named by the events' time. An object then holds the events of one period.

use std::fmt;
use std::str::FromStr;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
const HOURS: i64 = 24;

/// The part of a time that is in the names of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PeriodUnit {
    /// The day.
    Day,
    /// The day and the hour.
    Hour,
    /// The hour without the day: events of one hour of different days have the same name.
    HourOfDay,
}

const UNITS: [(&str, PeriodUnit); 3] =
    [("day", PeriodUnit::Day), ("hour", PeriodUnit::Hour), ("hour-of-day", PeriodUnit::HourOfDay)];

/// The times that have the same name. `Display` and `FromStr` are the format of what delivery saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    unit: PeriodUnit,
    number: i64,
}

/// A text that isn't a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a period")]
pub struct InvalidPeriod;

impl Period {
    /// The period of a time in microseconds since 1970, UTC.
    pub(super) const fn of(unit: PeriodUnit, time: i64) -> Self {
        let number = match unit {
            PeriodUnit::Day => time.div_euclid(DAY),
            PeriodUnit::Hour => time.div_euclid(HOUR),
            PeriodUnit::HourOfDay => time.div_euclid(HOUR).rem_euclid(HOURS),
        };
        Self { unit, number }
    }

    /// The period of another time, by the same unit.
    #[must_use]
    pub const fn again(self, time: i64) -> Self {
        Self::of(self.unit, time)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, unit)| *unit == self.unit).map_or("", |(name, _)| name);
        write!(f, "{unit} {}", self.number)
    }
}

event::serde_as_text!(Period);

impl FromStr for Period {
    type Err = InvalidPeriod;

    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        let (name, number) = text.split_once(' ').ok_or(InvalidPeriod)?;
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name).ok_or(InvalidPeriod)?;
        Ok(Self { unit: *unit, number: number.parse().map_err(|_| InvalidPeriod)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_one_name_have_one_period() {
        for (unit, time, same, other) in [
            (PeriodUnit::Day, 0, DAY - 1, DAY),
            (PeriodUnit::Day, -1, -DAY, 0),
            (PeriodUnit::Hour, HOUR, 2 * HOUR - 1, HOUR + DAY),
            (PeriodUnit::HourOfDay, HOUR, HOUR + DAY, 2 * HOUR),
            (PeriodUnit::HourOfDay, -1, DAY - HOUR, 0),
        ] {
            let period = Period::of(unit, time);
            assert_eq!(period, period.again(same), "{unit:?} {time}");
            assert_ne!(period, period.again(other), "{unit:?} {time}");
            assert_eq!(period.to_string().parse(), Ok(period));
        }
        for wrong in ["", "day", "day x", "week 1", "day 1 2"] {
            assert_eq!(wrong.parse::<Period>(), Err(InvalidPeriod), "{wrong}");
        }
    }
}
