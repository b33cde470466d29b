//! A record of a log: `opentelemetry/proto/logs/v1/logs.proto`.

use super::attributes::{any_value, attributes};
use super::message::{Fault, Fields, Message, Value};
use super::write;

const LOG: &Fields = &[
    (1, "timeUnixNano"),
    (2, "severityNumber"),
    (3, "severityText"),
    (5, "body"),
    (6, "attributes"),
    (7, "droppedAttributesCount"),
    (8, "flags"),
    (9, "traceId"),
    (10, "spanId"),
    (11, "observedTimeUnixNano"),
    (12, "eventName"),
];
const ATTRIBUTES: u32 = 6;

/// Every severity has four numbers, from 1.
const SEVERITIES: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const SEVERITY_NAMES: &[&str] = &[
    "UNSPECIFIED",
    "TRACE",
    "TRACE2",
    "TRACE3",
    "TRACE4",
    "DEBUG",
    "DEBUG2",
    "DEBUG3",
    "DEBUG4",
    "INFO",
    "INFO2",
    "INFO3",
    "INFO4",
    "WARN",
    "WARN2",
    "WARN3",
    "WARN4",
    "ERROR",
    "ERROR2",
    "ERROR3",
    "ERROR4",
    "FATAL",
    "FATAL2",
    "FATAL3",
    "FATAL4",
];

#[derive(Default)]
struct Log<'a> {
    time: u64,
    observed: u64,
    severity: u64,
    severity_text: Option<Value<'a>>,
    body: Option<Value<'a>>,
    has_attributes: bool,
    dropped: u64,
    flags: u64,
    trace_id: Option<Value<'a>>,
    span_id: Option<Value<'a>>,
    event_name: Option<Value<'a>>,
}

/// Writes the members of a record.
pub(super) fn write(message: Message<'_>, out: &mut String) -> Result<(), Fault> {
    let log = read(message)?;
    write::time("time", if log.time == 0 { log.observed } else { log.time }, out);
    write::time("observed_time", log.observed, out);
    write_severity(&log, out)?;
    write::text("event_name", log.event_name, out)?;
    if log.body.is_some() {
        write::member("body", out);
        any_value(log.body, out)?;
    }
    if log.has_attributes {
        write::member("attributes", out);
        attributes(message, LOG, ATTRIBUTES, out)?;
    }
    write::count("dropped_attributes_count", log.dropped, out);
    write::count("flags", log.flags, out);
    write::id("trace_id", log.trace_id, out)?;
    write::id("span_id", log.span_id, out)
}

fn read(message: Message<'_>) -> Result<Log<'_>, Fault> {
    let mut log = Log::default();
    message.walk(LOG, |number, value| {
        match number {
            1 => log.time = value.unsigned()?,
            2 => log.severity = value.number_of("SEVERITY_NUMBER_", SEVERITY_NAMES)?,
            3 => log.severity_text = Some(value),
            5 => log.body = Some(value),
            ATTRIBUTES => log.has_attributes = true,
            7 => log.dropped = value.unsigned()?,
            8 => log.flags = value.unsigned()?,
            9 => log.trace_id = Some(value),
            10 => log.span_id = Some(value),
            11 => log.observed = value.unsigned()?,
            _ => log.event_name = Some(value),
        }
        Ok::<_, Fault>(())
    })?;
    Ok(log)
}

/// Writes the text of the severity, else the name of its number.
fn write_severity(log: &Log<'_>, out: &mut String) -> Result<(), Fault> {
    let before = out.len();
    write::text("severity", log.severity_text, out)?;
    let name = log.severity.checked_sub(1).and_then(|from_0| SEVERITIES.get(usize::try_from(from_0 / 4).ok()?));
    if out.len() == before
        && let Some(name) = name
    {
        write::word("severity", name, out);
    }
    write::count("severity_number", log.severity, out);
    Ok(())
}
