//! Bodies in protocol buffers: `logproto.PushRequest`.
//! <https://github.com/grafana/loki/blob/main/pkg/push/push.proto>

use limits::EVENT_BYTES_MAX;

use super::labels;
use super::line::{self, Line, Lines};
use crate::protobuf::{self, InvalidMessage, WireValue};
use crate::{Problem, Stop, lossy};

const STREAMS: u32 = 1;
const LABELS: u32 = 1;
const ENTRIES: u32 = 2;
const TIME: u32 = 1;
const LINE: u32 = 2;
const METADATA: u32 = 3;
const SECONDS: u32 = 1;
const NANOSECONDS: u32 = 2;
const NAME: u32 = 1;
const VALUE: u32 = 2;

const TOO_LARGE: &str = "the line and its metadata have more than 1 MiB: send shorter ones";

/// Checks a whole body, before any line is passed on.
pub(super) fn check(body: &[u8]) -> Result<(), Problem> {
    check_level(body, &[STREAMS, ENTRIES]).map_err(|InvalidMessage| invalid())
}

fn check_level(message: &[u8], path: &[u32]) -> Result<(), InvalidMessage> {
    for field in protobuf::fields(message) {
        let field = field?;
        match (path.split_first(), field.value) {
            (Some((number, rest)), WireValue::Bytes(inner)) if *number == field.number => check_level(inner, rest)?,
            // An entry's time and metadata are messages.
            (None, WireValue::Bytes(inner)) if matches!(field.number, TIME | METADATA) => {
                protobuf::fields(inner).try_for_each(|field| field.map(|_| ()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Passes the lines of a body on.
pub(super) fn walk(body: &[u8], lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
    for stream in parts(body, STREAMS) {
        let text = parts(stream, LABELS).last().unwrap_or(b"{}");
        let mut labels = String::new();
        let is_written =
            text.len() <= EVENT_BYTES_MAX && labels::write(&String::from_utf8_lossy(text), &mut labels).is_some();
        let labels = is_written.then_some(&*labels);
        for entry in parts(stream, ENTRIES) {
            walk_entry(entry, labels, lines)?;
        }
    }
    Ok(())
}

fn walk_entry(entry: &[u8], labels: Option<&str>, lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
    if entry.len() > EVENT_BYTES_MAX {
        return lines.reject(&entry[..EVENT_BYTES_MAX], TOO_LARGE);
    }
    let line = parts(entry, LINE).last().unwrap_or_default();
    let time = parts(entry, TIME).last().unwrap_or_default();
    let time = nanoseconds(time).map(line::time).ok_or("the time is not in the years 1677 to 2262".into());
    match (lossy::string(line), metadata(entry)) {
        (Some(text), Some(metadata)) => {
            lines.push(&Line { time, line: text.into(), labels, metadata: Some(metadata.into()) })
        }
        _ => lines.reject(line, TOO_LARGE),
    }
}

fn metadata(entry: &[u8]) -> Option<String> {
    let mut out = String::from("{");
    for pair in parts(entry, METADATA) {
        if out.len() > EVENT_BYTES_MAX {
            return None;
        }
        if out.len() > 1 {
            out.push(',');
        }
        for (number, end) in [(NAME, ":"), (VALUE, "")] {
            out.push_str(&lossy::string(parts(pair, number).last().unwrap_or_default())?);
            out.push_str(end);
        }
    }
    Some(out + "}")
}

/// A timestamp of seconds and nanoseconds.
fn nanoseconds(time: &[u8]) -> Option<i64> {
    let part = |wanted: u32| {
        let values = protobuf::fields(time).flatten().filter(|field| field.number == wanted);
        values
            .last()
            .map_or(0, |field| if let WireValue::Varint(value) = field.value { value.cast_signed() } else { 0 })
    };
    part(SECONDS).checked_mul(1_000_000_000)?.checked_add(part(NANOSECONDS))
}

/// The values of a field that has bytes.
fn parts(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    protobuf::fields(message)
        .flatten()
        .filter(move |field| field.number == number)
        .filter_map(|field| field.value.bytes())
}

fn invalid() -> Problem {
    Problem::invalid("the body is no push request: send protocol buffers with snappy, or JSON as application/json")
}
