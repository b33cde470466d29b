//! The walk from a request to its records: resources, their scopes, and the records of these. All signals have the same envelope.

use super::attributes::attributes;
use super::emitter::Emitter;
use super::message::{Fault, Fields, Message, Value};
use super::shared::{SHARED_BYTES_MAX, SHARED_TOO_LARGE};
use super::{log, metric, span, write};
use crate::{Problem, Records, Stop};

/// What a request exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Logs,
    Traces,
    Metrics,
}

/// The fields of the three levels of the envelope. Their numbers are the same for all signals.
struct Envelope {
    type_name: &'static str,
    request: &'static Fields,
    resource: &'static Fields,
    scope: &'static Fields,
}

const LOGS: Envelope = Envelope {
    type_name: "otlp.log",
    request: &[(1, "resourceLogs")],
    resource: &[(1, "resource"), (2, "scopeLogs")],
    scope: &[(1, "scope"), (2, "logRecords")],
};
const TRACES: Envelope = Envelope {
    type_name: "otlp.span",
    request: &[(1, "resourceSpans")],
    resource: &[(1, "resource"), (2, "scopeSpans")],
    scope: &[(1, "scope"), (2, "spans")],
};

const METRICS: Envelope = Envelope {
    type_name: "otlp.metric",
    request: &[(1, "resourceMetrics")],
    resource: &[(1, "resource"), (2, "scopeMetrics")],
    scope: &[(1, "scope"), (2, "metrics")],
};

const RESOURCE: &Fields = &[(1, "attributes")];
const SCOPE: &Fields = &[(1, "name"), (2, "version"), (3, "attributes")];

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Problem::invalid(fault).into()
    }
}

/// Passes the records of a request on.
pub(super) fn walk(signal: Signal, request: Message<'_>, records: &mut Records<'_>) -> Result<(), Stop> {
    let envelope = match signal {
        Signal::Logs => LOGS,
        Signal::Traces => TRACES,
        Signal::Metrics => METRICS,
    };
    let mut emitter = Emitter::new(records, envelope.type_name);
    let mut shared = String::new();
    request.walk(envelope.request, |_, resource| {
        let resource = resource.message()?;
        shared.clear();
        let value = first(resource, envelope.resource)?;
        let written = value.map_or(Ok(()), |value| write_resource(value, &mut shared));
        let length = shared.len();
        resource.walk(envelope.resource, |number, scope| {
            if number == 1 {
                return Ok(());
            }
            shared.truncate(length);
            let scope = scope.message()?;
            let written =
                written.and(first(scope, envelope.scope)?.map_or(Ok(()), |value| write_scope(value, &mut shared)));
            let tail = written.map(|()| &*shared);
            scope.walk(envelope.scope, |number, record| {
                if number == 1 { Ok(()) } else { emit(signal, &mut emitter, record.message()?, tail) }
            })
        })
    })
}

fn emit(
    signal: Signal,
    emitter: &mut Emitter<'_, '_>,
    record: Message<'_>,
    tail: Result<&str, Fault>,
) -> Result<(), Stop> {
    match signal {
        Signal::Logs => emitter.emit(record, tail, |out| log::write(record, out).map(|()| None)),
        Signal::Traces => emitter.emit(record, tail, |out| span::write(record, out)),
        Signal::Metrics => metric::emit(record, emitter, tail),
    }
}

/// The field with the number 1, which may be anywhere in its message.
fn first<'a>(message: Message<'a>, known: &Fields) -> Result<Option<Value<'a>>, Stop> {
    let mut found = None;
    message.walk(&known[..1], |_, value| {
        found = Some(value);
        Ok::<_, Stop>(())
    })?;
    Ok(found)
}

fn write_resource(value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    let resource = value.message()?;
    if resource.bytes().len() > SHARED_BYTES_MAX {
        return Err(SHARED_TOO_LARGE);
    }
    out.push_str("\"resource\":");
    attributes(resource, RESOURCE, 1, out)
}

fn write_scope(value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    let scope = value.message()?;
    if scope.bytes().len() > SHARED_BYTES_MAX {
        return Err(SHARED_TOO_LARGE);
    }
    let (mut name, mut version, mut has_attributes) = (None, None, false);
    scope.walk(SCOPE, |number, value| {
        match number {
            1 => name = Some(value),
            2 => version = Some(value),
            _ => has_attributes = true,
        }
        Ok::<_, Fault>(())
    })?;
    let before = out.len();
    out.push_str(if before == 0 { "\"scope\":{" } else { ",\"scope\":{" });
    let begin = out.len();
    write::text("name", name, out)?;
    write::text("version", version, out)?;
    if has_attributes {
        write::member("attributes", out);
        attributes(scope, SCOPE, 3, out)?;
    }
    if out.len() == begin {
        out.truncate(before);
    } else {
        out.push('}');
    }
    Ok(())
}
