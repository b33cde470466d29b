//! Formats of strings, which are asserted if the configuration asks for it.

use core::net::{Ipv4Addr, Ipv6Addr};
use text::calendar;

use super::ecma_pattern::SchemaPattern;
use super::uri::is_scheme;
use json::JsonPointer;

/// A known format. Others assert nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFormat {
    /// `date-time`
    DateTime,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `duration`
    Duration,
    /// `email`
    Email,
    /// `hostname`
    Hostname,
    /// `ipv4`
    Ipv4,
    /// `ipv6`
    Ipv6,
    /// `uri`
    Uri,
    /// `uri-reference`
    UriReference,
    /// `uuid`
    Uuid,
    /// `json-pointer`
    JsonPointer,
    /// `relative-json-pointer`
    RelativeJsonPointer,
    /// `regex`
    Regex,
}

const NAMES: [(&str, StringFormat); 14] = [
    ("date-time", StringFormat::DateTime),
    ("date", StringFormat::Date),
    ("time", StringFormat::Time),
    ("duration", StringFormat::Duration),
    ("email", StringFormat::Email),
    ("hostname", StringFormat::Hostname),
    ("ipv4", StringFormat::Ipv4),
    ("ipv6", StringFormat::Ipv6),
    ("uri", StringFormat::Uri),
    ("uri-reference", StringFormat::UriReference),
    ("uuid", StringFormat::Uuid),
    ("json-pointer", StringFormat::JsonPointer),
    ("relative-json-pointer", StringFormat::RelativeJsonPointer),
    ("regex", StringFormat::Regex),
];

impl StringFormat {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Its name in a schema.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Whether a string has the format.
    #[must_use]
    pub fn is_that_of(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Date => is_date(text.as_bytes()),
            Self::Time => is_time(text),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uri => text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)) && is_uri_text(text),
            Self::UriReference => is_uri_text(text),
            Self::Uuid => is_uuid(text.as_bytes()),
            Self::JsonPointer => text.parse::<JsonPointer>().is_ok(),
            Self::RelativeJsonPointer => is_relative_pointer(text),
            Self::Regex => SchemaPattern::new(text).is_ok(),
        }
    }
}

/// The number of so many digits.
fn digits(text: &[u8]) -> Option<u32> {
    text.iter()
        .try_fold(0_u32, |value, digit| Some(value * 10 + u32::from(digit.checked_sub(b'0').filter(|d| *d < 10)?)))
}

fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.as_bytes().split_at_checked(10) else { return false };
    let time = text.get(11..).unwrap_or_default();
    is_date(date) && matches!(rest.first(), Some(b'T' | b't')) && is_time(time)
}

fn is_date(text: &[u8]) -> bool {
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = text else { return false };
    let (Some(year), Some(month), Some(day)) =
        (digits(year).filter(|_| year.len() == 4), digits(&[*m1, *m2]), digits(&[*d1, *d2]))
    else {
        return false;
    };
    calendar::date(year.into(), month.into(), day.into()).is_some()
}

/// RFC 3339 `full-time`, with a leap second only at 23:59:60 in UTC.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.as_bytes().split_at_checked(8) else { return false };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return false };
    let (Some(hour), Some(minute), Some(second)) = (digits(&[*h1, *h2]), digits(&[*m1, *m2]), digits(&[*s1, *s2]))
    else {
        return false;
    };
    let fraction = match rest {
        [b'.', behind @ ..] => 1 + behind.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    if fraction == 1 {
        return false;
    }
    let offset = match &rest[fraction..] {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2]).filter(|h| *h < 24), digits(&[*m1, *m2]).filter(|m| *m < 60));
            // Minutes of a day, so nothing is below zero.
            hours.zip(minutes).map(|(h, m)| if *sign == b'+' { 1440 - h * 60 - m } else { h * 60 + m })
        }
        _ => None,
    };
    let Some(offset) = offset else { return false };
    hour < 24 && minute < 60 && (second < 60 || second == 60 && (hour * 60 + minute + offset) % 1440 == 1439)
}

/// ISO 8601 by RFC 3339 appendix A.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
    if let Some(weeks) = date.strip_suffix('W') {
        return time.is_none() && !weeks.is_empty() && weeks.bytes().all(|byte| byte.is_ascii_digit());
    }
    let units = |text: &str, names: &str| -> Option<usize> {
        let (mut names, mut count, mut rest) = (names.chars(), 0, text);
        let mut before = None;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let unit = rest.get(digits..)?.chars().next().filter(|_| digits > 0)?;
            let place = names.position(|name| name == unit)?;
            // No unit between two may be missing.
            before.is_none_or(|()| place == 0).then_some(())?;
            before = Some(());
            count += 1;
            rest = &rest[digits + unit.len_utf8()..];
        }
        Some(count)
    };
    match (units(date, "YMD"), time.map(|time| units(time, "HMS"))) {
        (Some(days), None) => days > 0,
        (Some(_), Some(Some(hours))) => hours > 0,
        _ => false,
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let is_dotted = !local.is_empty()
        && local.bytes().all(is_atom)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..");
    let is_literal = |text: &str| {
        text.parse::<Ipv4Addr>().is_ok() || text.strip_prefix("IPv6:").is_some_and(|v6| v6.parse::<Ipv6Addr>().is_ok())
    };
    let is_domain = match domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(literal) => is_literal(literal),
        None => is_hostname(domain),
    };
    (is_quoted || is_dotted) && is_domain
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Whether a text has the characters of a URI (RFC 3986), each percent sign two digits, and one `#` at most.
fn is_uri_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_good = |(at, byte): (usize, &u8)| match byte {
        b'%' => matches!(bytes.get(at + 1..at + 3), Some([a, b]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()),
        byte => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(byte),
    };
    bytes.iter().enumerate().all(is_good) && bytes.iter().filter(|byte| **byte == b'#').count() <= 1
}

fn is_uuid(text: &[u8]) -> bool {
    let is_good = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.iter().enumerate().all(is_good)
}

fn is_relative_pointer(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (up, rest) = text.split_at(digits);
    (up == "0" || (digits > 0 && !up.starts_with('0'))) && (rest == "#" || rest.parse::<JsonPointer>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_distinguished_from_other_texts() {
        for (name, good, bad) in [
            ("date-time", "2026-11-02T10:05:03.25+00:00", "2026-11-02 10:05:03Z"),
            ("date-time", "1998-12-31T15:59:60-08:00", "1998-12-31T15:59:60Z"),
            ("date", "2024-02-29", "2026-02-29"),
            ("time", "23:59:60Z", "24:00:00Z"),
            ("duration", "P1Y2M3DT4H5M6S", "P1Y3D"),
            ("duration", "P4W", "PT"),
            ("email", "a.b+c@example.org", "a..b@example.org"),
            ("hostname", "www.example.org", "-a.example"),
            ("ipv4", "192.0.2.1", "192.0.2.256"),
            ("ipv6", "2001:db8::1", "2001:db8::g"),
            ("uri", "https://example.org/a?b#c", "/a"),
            ("uri-reference", "../a", "a b"),
            ("uuid", "2651fa94-4d60-8482-855f-ec6e00000007", "2651fa944d608482855fec6e00000007"),
            ("json-pointer", "/a/0", "a"),
            ("relative-json-pointer", "1/a", "01/a"),
            ("regex", "^a+$", "("),
        ] {
            let format = StringFormat::of_name(name).unwrap();
            assert_eq!(format.name(), name);
            assert!(format.is_that_of(good) && !format.is_that_of(bad), "{name}: {good} and {bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[0-9TtZz:.+@é/#%PYMDWHS-]{0,30}") {
            for (_, format) in NAMES {
                let _ = format.is_that_of(&text);
            }
        }
    }
}
