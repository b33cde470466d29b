//! The time of an event in its payload.

use std::fmt;
use std::str::FromStr;

use crate::{TimeFormat, Zone};
use json::text;
use json::{InvalidPointer, JsonPointer};

/// The place of an event's time in its payload, and its format: as for `coerce`.
#[derive(Clone, PartialEq, Eq)]
pub struct TimeRule {
    pointer: JsonPointer,
    format: TimeFormat,
    /// The zone of a time without an offset.
    zone: Option<Zone>,
    refuses: bool,
}

impl From<JsonPointer> for TimeRule {
    /// RFC 3339, with an offset.
    fn from(pointer: JsonPointer) -> Self {
        Self { pointer, format: TimeFormat::Rfc3339, zone: None, refuses: false }
    }
}

impl FromStr for TimeRule {
    type Err = InvalidPointer;

    fn from_str(pointer: &str) -> Result<Self, InvalidPointer> {
        pointer.parse::<JsonPointer>().map(Self::from)
    }
}

impl fmt::Debug for TimeRule {
    /// The options that decide on the times. Fingerprints of aggregates contain this text. Without options it is the
    /// pointer alone, as before there were options, so an upgrade restarts no aggregate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.pointer, f)?;
        match (&self.format, self.zone) {
            (TimeFormat::Rfc3339, None) => Ok(()),
            (format, zone) => write!(f, " as {format:?} in {zone:?}"),
        }
    }
}

impl TimeRule {
    /// With another format: a name such as `unix_ms`, or a pattern.
    ///
    /// # Errors
    /// It is neither.
    pub fn with_format(self, format: &str) -> Result<Self, String> {
        Ok(Self { format: TimeFormat::parse(format)?, ..self })
    }

    /// With a zone for times without an offset: `UTC`, `+01:00`. `None` if it is none.
    #[must_use]
    pub fn with_zone(self, zone: &str) -> Option<Self> {
        Some(Self { zone: Some(Zone::parse(zone)?), ..self })
    }

    /// Events with a time that cannot be read are rejected.
    #[must_use]
    pub fn refusing(self) -> Self {
        Self { refuses: true, ..self }
    }

    /// Whether events with a time that cannot be read are rejected.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        self.refuses
    }

    /// The place of the time.
    #[must_use]
    pub const fn pointer(&self) -> &JsonPointer {
        &self.pointer
    }

    /// The time in a payload: microseconds since 1970, UTC. `None` if there is no value, or null.
    ///
    /// # Errors
    /// Why the value cannot be read.
    pub fn read(&self, payload: &str) -> Result<Option<i64>, String> {
        let Some(json) = self.pointer.lookup(payload).filter(|json| *json != "null") else { return Ok(None) };
        let Some(text) = text::scalar(json) else {
            return Err(format!("the value is {}, but should be a string or a number", text::kind(json)));
        };
        self.format.read(text.trim(), self.zone).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> TimeRule {
        "/at".parse::<JsonPointer>().unwrap().into()
    }

    #[test]
    fn a_time_is_a_text_with_an_offset() {
        let time = |payload: &str| rule().read(payload);
        assert_eq!(time(r#"{"at": "1970-01-01T00:00:01Z"}"#), Ok(Some(1_000_000)));
        assert_eq!(time(r#"{"at": "1970-01-01T01:00:00\u002b01:00"}"#), Ok(Some(0)));
        assert_eq!(time(r#"{"at": " 1970-01-01 00:00+0000 "}"#), Ok(Some(0)));
        for none in [r#"{"at": null}"#, "{}", "7"] {
            assert_eq!(time(none), Ok(None), "{none}");
        }
        for unread in ["1", "\"yesterday\"", "\"\"", "true", "[]", "\"1970-01-01T00:00:00\"", "\"1970-01-01\""] {
            assert!(time(&format!("{{\"at\": {unread}}}")).is_err(), "{unread}");
        }
    }

    #[test]
    fn only_options_change_fingerprints() {
        assert_eq!(format!("{:?}", Some(rule().refusing())), "Some(\"/at\")");
        assert_ne!(format!("{:?}", rule().with_zone("UTC").unwrap()), "\"/at\"");
        assert_ne!(format!("{:?}", rule().with_format("unix").unwrap()), "\"/at\"");
    }

    #[test]
    fn a_zone_and_a_format_are_options() {
        let read = |rule: TimeRule, value: &str| rule.read(&format!("{{\"at\": {value}}}"));
        assert_eq!(read(rule().with_zone("+01:00").unwrap(), "\"1970-01-01T01:00:00\""), Ok(Some(0)));
        assert_eq!(read(rule().with_zone("+01:00").unwrap(), "\"1970-01-01T01:00:00Z\""), Ok(Some(3_600_000_000)));
        for (format, value) in
            [("unix", "1.0"), ("unix", "\"1\""), ("unix_ms", "1e3"), ("unix_us", "1000000"), ("unix_ns", "1E9")]
        {
            assert_eq!(read(rule().with_format(format).unwrap(), value), Ok(Some(1_000_000)), "{format} {value}");
        }
        assert!(read(rule().with_format("%d.%m.%Y").unwrap(), "\"01.01.1970\"").is_err());
        assert!(read(rule().with_format("unix").unwrap(), "1e99").is_err());
        assert!(rule().with_format("iso").is_err() && rule().with_zone("Mars").is_none());
    }
}
