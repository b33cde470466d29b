//! A span: `opentelemetry/proto/trace/v1/trace.proto`.

use super::attributes::attributes;
use super::message::{Fault, Fields, Message, Value};
use super::write;

const SPAN: &Fields = &[
    (1, "traceId"),
    (2, "spanId"),
    (3, "traceState"),
    (4, "parentSpanId"),
    (5, "name"),
    (6, "kind"),
    (7, "startTimeUnixNano"),
    (8, "endTimeUnixNano"),
    (9, "attributes"),
    (10, "droppedAttributesCount"),
    (11, "events"),
    (12, "droppedEventsCount"),
    (13, "links"),
    (14, "droppedLinksCount"),
    (15, "status"),
    (16, "flags"),
];
const ATTRIBUTES: u32 = 9;
const EVENTS: u32 = 11;
const LINKS: u32 = 13;
const EVENT: &Fields = &[(1, "timeUnixNano"), (2, "name"), (3, "attributes"), (4, "droppedAttributesCount")];
const LINK: &Fields =
    &[(1, "traceId"), (2, "spanId"), (3, "traceState"), (4, "attributes"), (5, "droppedAttributesCount"), (6, "flags")];
const STATUS: &Fields = &[(2, "message"), (3, "code")];

const KINDS: &[&str] = &["unspecified", "internal", "server", "client", "producer", "consumer"];
const CODES: &[&str] = &["unset", "ok", "error"];

/// Bytes of the id of a span: that of its trace, and its own.
pub(super) const ID_BYTES: usize = 24;

#[derive(Default)]
struct Span<'a> {
    trace_id: Option<Value<'a>>,
    span_id: Option<Value<'a>>,
    parent: Option<Value<'a>>,
    state: Option<Value<'a>>,
    name: Option<Value<'a>>,
    status: Option<Value<'a>>,
    kind: u64,
    start: u64,
    end: u64,
    flags: u64,
    dropped_attributes: u64,
    dropped_events: u64,
    dropped_links: u64,
    has_attributes: bool,
    has_events: bool,
    has_links: bool,
}

/// Writes the members of a span. Returns its id, unless it has none.
pub(super) fn write(message: Message<'_>, out: &mut String) -> Result<Option<[u8; ID_BYTES]>, Fault> {
    let span = read(message)?;
    write::text("name", span.name, out)?;
    write::named("kind", span.kind, KINDS, out);
    write::time("start", span.start, out);
    write::time("end", span.end, out);
    if let Some(duration) = span.end.checked_sub(span.start).filter(|_| span.start != 0) {
        write::member("duration_ns", out);
        write::whole(duration, out);
    }
    write_status(span.status, out)?;
    write::id("trace_id", span.trace_id, out)?;
    write::id("span_id", span.span_id, out)?;
    write::id("parent_span_id", span.parent, out)?;
    write::text("trace_state", span.state, out)?;
    write::count("flags", span.flags, out);
    if span.has_attributes {
        write::member("attributes", out);
        attributes(message, SPAN, ATTRIBUTES, out)?;
    }
    if span.has_events {
        write_list("events", message, EVENTS, write_event, out)?;
    }
    if span.has_links {
        write_list("links", message, LINKS, write_link, out)?;
    }
    write::count("dropped_attributes_count", span.dropped_attributes, out);
    write::count("dropped_events_count", span.dropped_events, out);
    write::count("dropped_links_count", span.dropped_links, out);
    id(span.trace_id, span.span_id)
}

fn read(message: Message<'_>) -> Result<Span<'_>, Fault> {
    let mut span = Span::default();
    message.walk(SPAN, |number, value| {
        match number {
            1 => span.trace_id = Some(value),
            2 => span.span_id = Some(value),
            3 => span.state = Some(value),
            4 => span.parent = Some(value),
            5 => span.name = Some(value),
            6 => span.kind = value.number_of("SPAN_KIND_", KINDS)?,
            7 => span.start = value.unsigned()?,
            8 => span.end = value.unsigned()?,
            ATTRIBUTES => span.has_attributes = true,
            10 => span.dropped_attributes = value.unsigned()?,
            EVENTS => span.has_events = true,
            12 => span.dropped_events = value.unsigned()?,
            LINKS => span.has_links = true,
            14 => span.dropped_links = value.unsigned()?,
            15 => span.status = Some(value),
            _ => span.flags = value.unsigned()?,
        }
        Ok::<_, Fault>(())
    })?;
    Ok(span)
}

fn write_status(status: Option<Value<'_>>, out: &mut String) -> Result<(), Fault> {
    let Some(status) = status else { return Ok(()) };
    let (mut message, mut code) = (None, 0);
    status.message()?.walk(STATUS, |number, value| {
        match number {
            2 => message = Some(value),
            _ => code = value.number_of("STATUS_CODE_", CODES)?,
        }
        Ok::<_, Fault>(())
    })?;
    if code != 0 || message.is_some() {
        write::member("status", out);
        out.push('{');
        write::named("code", code, CODES, out);
        write::text("message", message, out)?;
        out.push('}');
    }
    Ok(())
}

fn write_list(
    name: &str,
    message: Message<'_>,
    wanted: u32,
    write_one: fn(Message<'_>, &mut String) -> Result<(), Fault>,
    out: &mut String,
) -> Result<(), Fault> {
    write::member(name, out);
    out.push('[');
    message.walk(SPAN, |number, value| {
        if number != wanted {
            return Ok::<_, Fault>(());
        }
        out.push_str(if out.ends_with('[') { "{" } else { ",{" });
        write_one(value.message()?, out)?;
        out.push('}');
        Ok(())
    })?;
    out.push(']');
    Ok(())
}

fn write_event(message: Message<'_>, out: &mut String) -> Result<(), Fault> {
    let (mut time, mut name, mut has_attributes, mut dropped) = (0, None, false, 0);
    message.walk(EVENT, |number, value| {
        match number {
            1 => time = value.unsigned()?,
            2 => name = Some(value),
            3 => has_attributes = true,
            _ => dropped = value.unsigned()?,
        }
        Ok::<_, Fault>(())
    })?;
    write::time("time", time, out);
    write::text("name", name, out)?;
    if has_attributes {
        write::member("attributes", out);
        attributes(message, EVENT, 3, out)?;
    }
    write::count("dropped_attributes_count", dropped, out);
    Ok(())
}

fn write_link(message: Message<'_>, out: &mut String) -> Result<(), Fault> {
    let (mut trace, mut span, mut state, mut has_attributes, mut dropped, mut flags) = (None, None, None, false, 0, 0);
    message.walk(LINK, |number, value| {
        match number {
            1 => trace = Some(value),
            2 => span = Some(value),
            3 => state = Some(value),
            4 => has_attributes = true,
            5 => dropped = value.unsigned()?,
            _ => flags = value.unsigned()?,
        }
        Ok::<_, Fault>(())
    })?;
    write::id("trace_id", trace, out)?;
    write::id("span_id", span, out)?;
    write::text("trace_state", state, out)?;
    write::count("flags", flags, out);
    if has_attributes {
        write::member("attributes", out);
        attributes(message, LINK, 4, out)?;
    }
    write::count("dropped_attributes_count", dropped, out);
    Ok(())
}

/// The id: both ids, if they have the lengths that OpenTelemetry defines. Spans with others get ids as logs do.
fn id(trace: Option<Value<'_>>, span: Option<Value<'_>>) -> Result<Option<[u8; ID_BYTES]>, Fault> {
    let trace = trace.map_or(Ok(None), Value::id)?;
    let span = span.map_or(Ok(None), Value::id)?;
    let (Some(trace), Some(span)) = (trace, span) else { return Ok(None) };
    let mut id = [0; ID_BYTES];
    let (first, second) = id.split_at_mut(16);
    if trace.len() != first.len() || span.len() != second.len() {
        return Ok(None);
    }
    first.copy_from_slice(&trace);
    second.copy_from_slice(&span);
    Ok(Some(id))
}
