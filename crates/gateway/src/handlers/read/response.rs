//! The responses of reads, as JSON, with the stored payloads byte for byte.

use std::sync::Arc;

use event::read::{Payload, StoredEvent};
use event::{EventId, Position};
use eventlog::Rejections;
use http::StatusCode;
use serde::Serialize;
use text::rfc3339;

use crate::ack::response::{self as ack_response, DeadLetterMember, names};
use crate::ack::until_delivered::Dead;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use crate::responses::JSON;
use http1::Response;

/// The next request may find more.
const LINES: &str = "cache-control: no-store\r\n";
/// A page with more bytes is written on another thread: the shard's other requests can't wait for it.
const WRITE_HERE_BYTES_MAX: usize = 64 * 1024;

/// A response with what was found.
pub(super) fn ok(body: Vec<u8>) -> Response {
    Response { lines: LINES, ..Response::with_body(StatusCode::OK, JSON, body) }
}

/// One event as `GET /events/{id}` shows it; `None` if another program has stored something else under its id.
#[must_use]
pub fn event_json(event: &StoredEvent) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(event.bytes());
    write_event(&mut body, event).then_some(body)
}

/// What follows the events of a page: the cursor of the next, and dead letters.
pub(super) fn rest(next: Option<&str>, dead: &Rejections) -> String {
    let mut rest = next.map_or_else(String::new, |next| format!(r#","next":"{next}""#));
    if dead.count > 0 {
        let members: Vec<DeadLetterMember<'_>> = dead.listed.iter().map(DeadLetterMember::of).collect();
        rest += ",\"dead\":";
        rest += &serde_json::to_string(&members).expect("texts can be written as JSON");
    }
    if dead.count > dead.listed.len() as u64 {
        rest += &format!(",\"dead_count\":{}", dead.count);
    }
    rest
}

/// A page with its events, and the rest of it.
///
/// # Errors
/// There is no thread to write a large one.
pub(super) async fn page(events: Vec<StoredEvent>, rest: String) -> Result<Vec<u8>, Refused> {
    let bytes = events.iter().map(StoredEvent::bytes).sum();
    if bytes <= WRITE_HERE_BYTES_MAX {
        return Ok(write_page(events, &rest, bytes));
    }
    let written = tokio::task::spawn_blocking(move || write_page(events, &rest, bytes)).await;
    written.map_err(|_| Problem::boxed(ErrorCode::StoreUnavailable, "the server could not write the page; retry later"))
}

/// Each event is freed when it is written: a page counts once in the memory of reads.
fn write_page(events: Vec<StoredEvent>, rest: &str, bytes: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(bytes + rest.len() + 512);
    body.extend_from_slice(br#"{"events":["#);
    let mut is_first = true;
    for event in events {
        let before = body.len();
        if !is_first {
            body.push(b',');
        }
        if write_event(&mut body, &event) {
            is_first = false;
        } else {
            body.truncate(before);
        }
    }
    body.push(b']');
    body.extend_from_slice(rest.as_bytes());
    body.push(b'}');
    body
}

#[derive(Serialize)]
struct Envelope<'a> {
    id: Displayed<EventId>,
    r#type: &'a str,
    source: &'a str,
    received_at: String,
}

/// An event whose payload is too large for a page.
#[derive(Serialize)]
struct OmittedPayload<'a> {
    #[serde(flatten)]
    envelope: Envelope<'a>,
    payload_omitted: bool,
    payload_bytes: u64,
}

struct Displayed<T>(T);

impl<T: std::fmt::Display> Serialize for Displayed<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Writes an event, unless its payload isn't JSON: then Forebay didn't accept it, and it would make the response invalid.
fn write_event(body: &mut Vec<u8>, event: &StoredEvent) -> bool {
    let StoredEvent { id, type_name, source, received_at, payload } = event;
    let envelope =
        Envelope { id: Displayed(*id), r#type: type_name, source, received_at: rfc3339::format(*received_at) };
    match payload {
        Payload::Whole(text) if json::check(text).is_err() => return false,
        Payload::Whole(text) => {
            serde_json::to_writer(&mut *body, &envelope).expect("texts can be written as JSON");
            body.pop();
            body.extend_from_slice(br#","payload":"#);
            body.extend_from_slice(text);
            body.push(b'}');
        }
        Payload::Omitted { bytes } => {
            let event = OmittedPayload { envelope, payload_omitted: true, payload_bytes: *bytes };
            serde_json::to_writer(&mut *body, &event).expect("texts can be written as JSON");
        }
    }
    true
}

#[derive(Serialize)]
struct PendingEvent<'a> {
    id: Displayed<EventId>,
    position: Displayed<Position>,
    pending: Vec<&'a str>,
}

#[derive(Serialize)]
struct PendingKey<'a> {
    events: [(); 0],
    pending: Vec<&'a str>,
}

/// An event that is known, and not stored yet in these sinks.
pub(super) fn pending_event(id: EventId, position: Position, sinks: &[Arc<str>]) -> Response {
    accepted(&PendingEvent { id: Displayed(id), position: Displayed(position), pending: names(sinks) })
}

#[derive(Serialize)]
struct DeadEvent {
    id: Displayed<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Displayed<Position>>,
}

/// An event that is in no store, because sinks have rejected it permanently.
pub(super) fn dead_event(id: EventId, position: Option<Position>, refusals: Rejections) -> Response {
    let Rejections { listed, count, unknown } = refusals;
    let event = DeadEvent { id: Displayed(id), position: position.map(Displayed) };
    ack_response::refused(event, &Dead { listed, count, pending: unknown })
}

/// The same for the events of a key.
pub(super) fn pending_key(sinks: &[Arc<str>]) -> Response {
    accepted(&PendingKey { events: [], pending: names(sinks) })
}

#[derive(Serialize)]
struct PendingObject<'a> {
    position: Displayed<Position>,
    pending: [&'a str; 1],
}

/// An object whose event is known, and not stored yet in this sink.
pub(super) fn pending_object(sink: &str, position: Position) -> Response {
    accepted(&PendingObject { position: Displayed(position), pending: [sink] })
}

fn accepted(what: &impl Serialize) -> Response {
    let body = serde_json::to_vec(what).expect("numbers and texts can be written as JSON");
    Response { lines: LINES, ..Response::with_body(StatusCode::ACCEPTED, JSON, body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(payload: &str) -> StoredEvent {
        StoredEvent {
            id: EventId([7; 16]),
            type_name: "a\"b".into(),
            source: "é\n".into(),
            received_at: 1_000_001,
            payload: Payload::of(payload.as_bytes()),
        }
    }

    #[test]
    fn payloads_are_unchanged_and_absent_members_omitted() {
        let events = ["{\"a\" :\t1e0}", "{\"a\"", "null"].map(stored);
        let rest = rest(Some("0f"), &Rejections::default());
        let text = String::from_utf8(write_page(events.into(), &rest, 0)).unwrap();
        let event = |payload: &str| {
            "{\"id\":\"07070707-0707-0707-0707-070707070707\",\"type\":\"a\\\"b\",\"source\":\"é\\n\",\
             \"received_at\":\"1970-01-01T00:00:01.000001Z\",\"payload\":"
                .to_owned()
                + payload
                + "}"
        };
        let expected = format!("{{\"events\":[{},{}],\"next\":\"0f\"}}", event("{\"a\" :\t1e0}"), event("null"));
        assert_eq!(text, expected);
        assert_eq!(write_page(vec![stored("")], "", 0), b"{\"events\":[]}");
        assert_eq!(event_json(&stored("{")), None);
    }

    #[test]
    fn event_with_omitted_payload_shows_its_size() {
        let event = StoredEvent { payload: Payload::Omitted { bytes: 196_608_000 }, ..stored("") };
        let text = String::from_utf8(write_page(vec![event.clone()], "", 0)).unwrap();
        assert!(
            text.ends_with(
                r#","received_at":"1970-01-01T00:00:01.000001Z","payload_omitted":true,"payload_bytes":196608000}]}"#
            ),
            "{text}"
        );
        assert!(!text.contains(r#""payload":"#), "{text}");
        assert!(event_json(&event).is_some(), "it is 200 by its id");
    }

    #[test]
    fn pending_event_names_its_sinks() {
        let sinks = ["a".into(), "b".into()];
        let response = pending_event(EventId([0; 16]), Position { shard: 1, sequence: 2 }, &sinks);
        let expected = r#"{"id":"00000000-0000-0000-0000-000000000000","position":"1:2","pending":["a","b"]}"#;
        assert_eq!((response.status, response.body.as_slice()), (StatusCode::ACCEPTED, expected.as_bytes()));
        assert_eq!(pending_key(&sinks).body, br#"{"events":[],"pending":["a","b"]}"#);
    }
}
