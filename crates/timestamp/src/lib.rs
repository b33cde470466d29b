//! Times in payloads: their formats, their zones, and the place of an event's time.

mod event_time;
mod strftime;

use ::text::calendar::{MINUTE, SECOND, TIMES};
use ::text::{rfc3339, time_fields};
use json::text;

pub use event_time::TimeRule;
pub use strftime::TimePattern;

/// The form in which a time is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// RFC 3339, also with a blank instead of `T` and without an offset.
    Rfc3339,
    /// Units since 1970, with this many in a second.
    Unix(i64),
    /// A pattern in the notation of `strftime`.
    Pattern(TimePattern),
}

/// Why a time without an offset from UTC isn't read.
const NO_OFFSET: &str = "the time has no offset from UTC, and no zone is configured: send an offset such as Z";

/// The zone of a time without an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its offset from UTC.
    minutes: i64,
}

/// The form in which a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeText {
    /// In UTC, with as many digits of a second as it has: none, three or six.
    Rfc3339,
    /// Whole units since 1970, with this many in a second.
    Unix(i64),
}

impl TimeFormat {
    /// A name, or a pattern such as `%d.%m.%Y %H:%M`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "rfc3339" => Self::Rfc3339,
            "unix" => Self::Unix(1),
            "unix_ms" => Self::Unix(1_000),
            "unix_us" => Self::Unix(1_000_000),
            "unix_ns" => Self::Unix(1_000_000_000),
            "rfc2822" => Self::Pattern(TimePattern::parse("%a, %d %b %Y %H:%M:%S %z")?),
            "clf" => Self::Pattern(TimePattern::parse("%d/%b/%Y:%H:%M:%S %z")?),
            _ if !text.contains('%') => {
                return Err("is neither rfc3339, rfc2822, clf, unix, unix_ms, unix_us, unix_ns nor a pattern such as \
                            %Y-%m-%d %H:%M:%S"
                    .to_owned());
            }
            _ => Self::Pattern(TimePattern::parse(text)?),
        })
    }

    /// Microseconds since 1970. `zone` is that of a time without an offset.
    ///
    /// # Errors
    /// Why the text is no time in this format.
    pub fn read(&self, text: &str, zone: Option<Zone>) -> Result<i64, String> {
        let time = match self {
            Self::Rfc3339 => {
                let (local, offset) =
                    rfc3339::parse_lenient(text).ok_or("the value is not a time such as 2026-11-21T13:00:00Z")?;
                offset.map(|minutes| Zone { minutes }).or(zone).ok_or(NO_OFFSET)?.to_utc(local)
            }
            Self::Unix(units) => read_unix(text, *units).ok_or("the value is not a number of units since 1970")?,
            Self::Pattern(pattern) => pattern.read(text, zone)?,
        };
        if TIMES.contains(&time) { Ok(time) } else { Err("the time is not in the years 0 to 9999".to_owned()) }
    }
}

impl Zone {
    /// The zone of UTC.
    pub const UTC: Self = Self { minutes: 0 };

    /// A zone such as `UTC` or `+01:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "UTC" | "Z" | "GMT" => Some(Self::UTC),
            _ => time_fields::offset(text).filter(|(_, rest)| rest.is_empty()).map(|(minutes, _)| Self { minutes }),
        }
    }

    /// Microseconds since 1970 of a local time.
    const fn to_utc(self, local: i64) -> i64 {
        local - self.minutes * MINUTE
    }
}

impl TimeText {
    /// Writes microseconds since 1970 as JSON.
    pub fn write(self, time: i64, out: &mut String) {
        match self {
            Self::Rfc3339 => text::write_string(&rfc3339::format_short(time), out),
            Self::Unix(units) => {
                // Nanoseconds of late years have more than 64 bits.
                let number = (i128::from(time) * i128::from(units)).div_euclid(i128::from(SECOND));
                out.push_str(&number.to_string());
            }
        }
    }
}

/// Digits that microseconds of any time have at most.
const DIGITS_MAX: i64 = 19;

/// A number of units since 1970, in any form of JSON: `1795168800`, `1.7951688e9`.
fn read_unix(text: &str, units: i64) -> Option<i64> {
    let (is_negative, number) = text.strip_prefix('-').map_or((false, text), |number| (true, number));
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let zeros = whole.bytes().chain(fraction.bytes()).take_while(|digit| *digit == b'0').count();
    let digits = whole.bytes().chain(fraction.bytes()).skip(zeros);
    if digits.clone().next().is_none() {
        return Some(0);
    }
    // This many of the digits are whole microseconds.
    let length = |count: usize| i64::try_from(count).ok();
    let count = length(whole.len())? - length(zeros)? + i64::from(exponent) + 6 - i64::from(units.ilog10());
    if count > DIGITS_MAX {
        return None;
    }
    let count = usize::try_from(count).unwrap_or(0);
    let digits = digits.chain(std::iter::repeat(b'0')).take(count);
    let time = digits.fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    i64::try_from(if is_negative { -time } else { time }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(format: &str, text: &str) -> Option<String> {
        TimeFormat::parse(format).unwrap().read(text, Some(Zone { minutes: 60 })).ok().map(rfc3339::format_short)
    }

    #[test]
    fn forms_have_their_times() {
        for (format, text, time) in [
            ("rfc3339", "2026-11-21T13:00:00Z", "2026-11-21T13:00:00Z"),
            ("rfc3339", "2026-11-21t13:00:00.25+05:30", "2026-11-21T07:30:00.250Z"),
            ("rfc3339", "2026-11-21 13:00", "2026-11-21T12:00:00Z"),
            ("rfc3339", "2026-11-21", "2026-11-20T23:00:00Z"),
            ("rfc3339", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
            ("rfc3339", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
            ("rfc3339", "2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("rfc3339", "2026-11-21T13:00:30+0000", "2026-11-21T13:00:30Z"),
            ("rfc3339", "2026-11-21T13:00Z", "2026-11-21T13:00:00Z"),
            ("rfc3339", "2026-11-21 13:00:30+00", "2026-11-21T13:00:30Z"),
            ("rfc3339", "2026-11-21T13:00:30,000Z", "2026-11-21T13:00:30Z"),
            ("rfc3339", "2026-11-21T13:00:30.1234567 -05:00", "2026-11-21T18:00:30.123456Z"),
            ("rfc3339", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("rfc2822", "Sat, 21 Nov 2026 13:00:00 -0800", "2026-11-21T21:00:00Z"),
            ("rfc2822", "Sat, 21 Nov 2026 13:00:00 GMT", "2026-11-21T13:00:00Z"),
            ("clf", "17/May/2015:10:05:03 +0000", "2015-05-17T10:05:03Z"),
            ("unix", "1431857103", "2015-05-17T10:05:03Z"),
            ("unix", "-0.5", "1969-12-31T23:59:59.500Z"),
            ("unix", "1.7951688e9", "2026-11-20T10:00:00Z"),
            ("unix", "1795168800.0", "2026-11-20T10:00:00Z"),
            ("unix", "17951688000E-1", "2026-11-20T10:00:00Z"),
            ("unix_ms", "1.7951688e+12", "2026-11-20T10:00:00Z"),
            ("unix_us", "1795168800000001", "2026-11-20T10:00:00.000001Z"),
            ("unix", "0e-999999999", "1970-01-01T00:00:00Z"),
            ("unix_ms", "1431857103250", "2015-05-17T10:05:03.250Z"),
            ("unix_ns", "1431857103000001999", "2015-05-17T10:05:03.000001Z"),
            ("%d.%m.%Y %H:%M", "21.11.2026 13:00", "2026-11-21T12:00:00Z"),
            ("%m/%d/%y %I:%M %p", "11/21/26 01:05 PM", "2026-11-21T12:05:00Z"),
            ("%Y%m%d%H%M%S%f", "20261121130000.5", "2026-11-21T12:00:00.500Z"),
            ("%s", "60", "1970-01-01T00:01:00Z"),
            ("%Y-%j", "2024-366", "2024-12-30T23:00:00Z"),
            ("%s", "253402300799", "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(read(format, text).as_deref(), Some(time), "{format}: {text}");
        }
    }

    #[test]
    fn invalid_times_are_not_read() {
        for (format, texts) in [
            (
                "rfc3339",
                &["", "yesterday", "2026-02-29", "2026-13-01", "2026-11-21T25:00", "2026-11-21T13:00:00+1"][..],
            ),
            ("rfc3339", &["é026-11-21", "2026-11-21T13:00:00Zx", "+026-11-21", "0000-01-01T00:00:00+01:00"]),
            ("%s", &["999999999999999", "1234567890123456", "-1"]),
            (
                "unix",
                &[
                    "",
                    "-",
                    "1e",
                    "1e12",
                    "1e2147483648",
                    "1e-2147483649",
                    "99999999999999999999",
                    "12345678901234567",
                    "x",
                ],
            ),
            (
                "rfc3339",
                &["10000-01-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:61Z"],
            ),
            ("%d %b %Y", &["31 Feb 2026", "1 Foo 2026", "1 Jan", "1 Jan 2026 x"]),
        ] {
            for text in texts {
                assert_eq!(read(format, text), None, "{format}: {text}");
            }
        }
        for wrong in ["iso", "%Q", "%H:%M", "%"] {
            assert!(TimeFormat::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Random texts, and the times that the parser of the first releases read in them.
    #[test]
    fn texts_keep_the_times_of_earlier_parsers() {
        for line in include_str!("verdicts.txt").lines() {
            let [format, zone, text, time] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            let read = TimeFormat::parse(format).unwrap().read(text, Zone::parse(zone));
            assert_eq!(read.ok(), time.parse().ok(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn written_time_is_read_unchanged(time in TIMES) {
            prop_assert_eq!(TimeFormat::Rfc3339.read(&rfc3339::format_short(time), None), Ok(time));
            let mut micros = String::new();
            TimeText::Unix(1_000_000).write(time, &mut micros);
            prop_assert_eq!(TimeFormat::Unix(1_000_000).read(&micros, None), Ok(time));
            for (units, each) in [(1_i128, 1_000_000_i128), (1_000, 1_000)] {
                let mut text = String::new();
                TimeText::Unix(i64::try_from(units).unwrap()).write(time, &mut text);
                prop_assert_eq!(text.parse::<i128>().unwrap(), i128::from(time).div_euclid(each));
            }
            let mut nanos = String::new();
            TimeText::Unix(1_000_000_000).write(time, &mut nanos);
            prop_assert_eq!(nanos.parse::<i128>().unwrap(), i128::from(time) * 1_000);
        }

        #[test]
        fn no_text_panics(format in "(%[YmdHMSfbzyIpejas]|\\PC){0,6}", text in "([0-9:. eE+-]|\\PC){0,24}") {
            for format in [format.as_str(), "rfc3339", "rfc2822", "unix", "unix_ns"] {
                if let Ok(format) = TimeFormat::parse(format) {
                    let _ = (format.read(&text, Some(Zone { minutes: -90 })), format.read(&text, None));
                }
            }
        }
    }
}
