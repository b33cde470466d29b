//! Times by a pattern, in the notation of `strftime`.

use text::calendar::{SECOND, date, day_of_year, microseconds, second_of_day};
use text::time_fields::{decimals, digits, offset};

use super::{NO_OFFSET, Zone};

/// A pattern such as `%d.%m.%Y %H:%M:%S`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePattern {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This character; a blank matches any number of them.
    Is(char),
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    DayOfYear,
    /// The name of a day of the week, which is ignored.
    DayName,
    Hour,
    Hour12,
    Half,
    Minute,
    Second,
    Fraction,
    Offset,
    Unix,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The fields that were read so far.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    microsecond: i64,
    is_afternoon: Option<bool>,
    offset: Option<i64>,
    unix: Option<i64>,
}

impl TimePattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut characters) = (Vec::new(), text.chars());
        while let Some(character) = characters.next() {
            if character != '%' {
                parts.push(Part::Is(character));
                continue;
            }
            let directive = characters.next().unwrap_or(' ');
            parts.extend_from_slice(parts_of(directive).ok_or_else(|| {
                format!("has `%{directive}`; known are %Y %y %m %b %d %e %j %a %H %I %p %M %S %f %z %s %F %T and %%")
            })?);
        }
        let has = |part| parts.contains(&part);
        let has_year = has(Part::Year) || has(Part::ShortYear);
        let has_month = has(Part::Month) || has(Part::MonthName);
        let has_date = has_year && (has(Part::DayOfYear) || (has_month && has(Part::Day)));
        if has_date || has(Part::Unix) {
            return Ok(Self { parts });
        }
        Err("has no date: it needs %Y, %m and %d, or %s".to_owned())
    }

    /// Microseconds since 1970.
    pub(super) fn read(&self, text: &str, zone: Option<Zone>) -> Result<i64, String> {
        let (mut read, mut rest) = (Read::default(), text);
        for part in &self.parts {
            rest = part.read(rest, &mut read).ok_or("the value doesn't match the time format")?;
        }
        if !rest.trim().is_empty() {
            return Err("the value continues after the end of the format".to_owned());
        }
        let Some(zone) = read.zone(zone) else { return Err(NO_OFFSET.to_owned()) };
        read.time(zone).ok_or_else(|| "there is no such day or hour".to_owned())
    }
}

fn parts_of(directive: char) -> Option<&'static [Part]> {
    Some(match directive {
        'Y' => &[Part::Year],
        'y' => &[Part::ShortYear],
        'm' => &[Part::Month],
        'b' | 'B' | 'h' => &[Part::MonthName],
        'd' | 'e' => &[Part::Day],
        'j' => &[Part::DayOfYear],
        'a' | 'A' => &[Part::DayName],
        'H' | 'k' => &[Part::Hour],
        'I' | 'l' => &[Part::Hour12],
        'p' | 'P' => &[Part::Half],
        'M' => &[Part::Minute],
        'S' => &[Part::Second],
        'f' => &[Part::Fraction],
        'z' | 'Z' => &[Part::Offset],
        's' => &[Part::Unix],
        'F' => &[Part::Year, Part::Is('-'), Part::Month, Part::Is('-'), Part::Day],
        'T' => &[Part::Hour, Part::Is(':'), Part::Minute, Part::Is(':'), Part::Second],
        '%' => &[Part::Is('%')],
        _ => return None,
    })
}

impl Part {
    /// Reads this part; returns the rest of the text.
    fn read<'t>(self, text: &'t str, read: &mut Read) -> Option<&'t str> {
        let blanks = || text.trim_start();
        let number = |most| read_digits(blanks(), most);
        let (value, rest) = match self {
            Self::Is(' ') => return Some(blanks()),
            Self::Is(character) => return text.strip_prefix(character),
            Self::DayName => return Some(blanks().trim_start_matches(char::is_alphabetic)),
            Self::Fraction => {
                let (microsecond, rest) = decimals(text.strip_prefix(['.', ',']).unwrap_or(text));
                read.microsecond = microsecond;
                return Some(rest);
            }
            Self::Offset => {
                let (minutes, rest) = offset(blanks())?;
                read.offset = Some(minutes);
                return Some(rest);
            }
            Self::Half => {
                let (half, rest) = blanks().split_at_checked(2)?;
                read.is_afternoon = Some(half.eq_ignore_ascii_case("pm"));
                return (half.eq_ignore_ascii_case("pm") || half.eq_ignore_ascii_case("am")).then_some(rest);
            }
            Self::MonthName => {
                let (month, rest) = read_month(blanks())?;
                read.month = Some(month);
                return Some(rest);
            }
            Self::Year => number(4)?,
            Self::DayOfYear => number(3)?,
            Self::Unix => number(15)?,
            _ => number(2)?,
        };
        match self {
            Self::Year => read.year = Some(value),
            // As POSIX has it.
            Self::ShortYear => read.year = Some(if value < 69 { 2000 + value } else { 1900 + value }),
            Self::Month => read.month = Some(value),
            Self::Day => read.day = Some(value),
            Self::DayOfYear => read.day_of_year = Some(value),
            Self::Hour | Self::Hour12 => read.hour = value,
            Self::Minute => read.minute = value,
            Self::Second => read.second = value,
            _ => read.unix = Some(value),
        }
        Some(rest)
    }
}

impl Read {
    /// The zone in the text, or else the given one. Units since 1970 need none.
    fn zone(&self, given: Option<Zone>) -> Option<Zone> {
        let said = self.offset.map(|minutes| Zone { minutes });
        said.or(given).or(self.unix.map(|_| Zone::UTC))
    }

    fn time(&self, zone: Zone) -> Option<i64> {
        if let Some(unix) = self.unix {
            return unix.checked_mul(SECOND)?.checked_add(self.microsecond);
        }
        let hour = match self.is_afternoon {
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
            None => self.hour,
        };
        let day = match self.day_of_year {
            Some(number) => day_of_year(self.year?, number)?,
            None => date(self.year?, self.month?, self.day?)?,
        };
        let second = second_of_day(hour, self.minute, self.second)?;
        Some(zone.to_utc(microseconds(day, second) + self.microsecond))
    }
}

/// The number at the text's beginning, of at most this many digits, and the rest.
fn read_digits(text: &str, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((digits(&text[..count])?, &text[count..]))
}

/// A month's name, in full or its first three characters.
fn read_month(text: &str) -> Option<(i64, &str)> {
    let name: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    let lower = name.to_ascii_lowercase();
    let month =
        MONTHS.iter().zip(1..).find(|(month, _)| **month == lower || (lower.len() == 3 && month.starts_with(&lower)));
    month.map(|(_, number)| (number, &text[name.len()..]))
}
