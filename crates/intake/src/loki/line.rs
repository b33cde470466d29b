//! One line, from its parts to a payload.

use ::text::rfc3339;
use json::text;
use limits::EVENT_BYTES_MAX;
use std::borrow::Cow;

use crate::budget::Budget;
use crate::{IntakeRecord, RecordPayload, Records, Stop};

/// The type of all lines.
const TYPE: &str = "loki.log";
const INVALID_LABELS: &str =
    "the labels of the stream are invalid: send an object, or {NAME=\"VALUE\"}, with at most 1 MiB";

/// Writes a time of nanoseconds since 1970 with as many digits as it needs.
pub(super) fn time(nanoseconds: i64) -> String {
    // These are the years 1677 to 2262.
    let mut time = rfc3339::format_short(nanoseconds.div_euclid(1_000_000_000) * 1_000_000);
    let fraction = format!("{:09}", nanoseconds.rem_euclid(1_000_000_000));
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        time.truncate(time.len() - 1);
        time = format!("{time}.{fraction}Z");
    }
    time
}

/// The parts of a line, in JSON.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) time: Result<String, Cow<'static, str>>,
    /// A string.
    pub(super) line: Cow<'a, str>,
    /// An object; `None` if the labels are invalid.
    pub(super) labels: Option<&'a str>,
    /// An object, if there is one.
    pub(super) metadata: Option<Cow<'a, str>>,
}

/// Passes lines on.
pub(super) struct Lines<'l, 'r> {
    records: &'l mut Records<'r>,
    budget: Budget,
    made: String,
}

impl<'l, 'r> Lines<'l, 'r> {
    pub(super) const fn new(records: &'l mut Records<'r>) -> Self {
        Self { records, budget: Budget::new(), made: String::new() }
    }

    pub(super) fn push(&mut self, line: &Line<'_>) -> Result<(), Stop> {
        let Some(labels) = line.labels else { return self.reject(line.line.as_bytes(), INVALID_LABELS) };
        let bytes = line.line.len() + labels.len() + line.metadata.as_ref().map_or(0, |metadata| metadata.len());
        self.budget.spend(bytes)?;
        self.made.clear();
        let payload = match &line.time {
            Err(detail) => RecordPayload::Rejected { sent: line.line.as_bytes(), detail: detail.clone() },
            Ok(_) if bytes > EVENT_BYTES_MAX => {
                let detail =
                    format!("the line and its labels have {bytes} bytes; at most {EVENT_BYTES_MAX} are allowed");
                RecordPayload::Rejected { sent: line.line.as_bytes(), detail: detail.into() }
            }
            Ok(time) => {
                write(line, time, labels, &mut self.made);
                RecordPayload::Sent(self.made.as_bytes())
            }
        };
        self.records.take(IntakeRecord { type_name: TYPE, id: None, payload })
    }

    /// Passes a line on that is rejected.
    pub(super) fn reject(&mut self, sent: &[u8], detail: &'static str) -> Result<(), Stop> {
        self.budget.spend(sent.len())?;
        let payload = RecordPayload::Rejected { sent, detail: detail.into() };
        self.records.take(IntakeRecord { type_name: TYPE, id: None, payload })
    }
}

fn write(line: &Line<'_>, time: &str, labels: &str, out: &mut String) {
    out.push_str("{\"time\":");
    text::write_string(time, out);
    out.push_str(",\"line\":");
    out.push_str(&line.line);
    out.push_str(",\"labels\":");
    out.push_str(labels);
    if let Some(metadata) = line.metadata.as_ref().filter(|metadata| **metadata != "{}") {
        out.push_str(",\"metadata\":");
        out.push_str(metadata);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_nanoseconds() {
        for (nanoseconds, expected) in [
            (1_795_867_200_000_000_000, "2026-11-28T12:00:00Z"),
            (1_795_867_200_123_456_789, "2026-11-28T12:00:00.123456789Z"),
            (1_795_867_200_500_000_000, "2026-11-28T12:00:00.5Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(time(nanoseconds), expected);
        }
    }
}
