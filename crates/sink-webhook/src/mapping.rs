//! One event as a request.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Request};
use text::rfc3339;

use super::config::{MessageShape, WebhookConfig};
use super::error::Failure;
use event::TraceParent;
use net::http_client::{RequestBody, full};
use sink::envelope::write_text;
use sink::{Record, Write};

const TRACE: HeaderName = HeaderName::from_static("traceparent");
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// The header by which many servers detect duplicates, including another Forebay
/// (draft-ietf-httpapi-idempotency-key-header).
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("Forebay/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The request for a record, with the current time, and the trace that the record is a part of.
pub(super) fn request(
    config: &WebhookConfig,
    record: &Record<'_>,
    trace: Option<TraceParent>,
) -> Result<Request<RequestBody>, Failure> {
    let url = config.url.of(record.type_name).map_err(|_| Failure::Url)?;
    let now = clock::since_1970().as_secs();
    let (id, body) = (id(record), body(config.shape, record));
    let mut request = Request::post(url).body(()).map_err(|_| Failure::Url)?;
    let headers = request.headers_mut();
    for header in &config.headers {
        headers.append(header.name.clone(), header.value.clone());
    }
    headers.entry(USER_AGENT).or_insert(AGENT);
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(TIMESTAMP, HeaderValue::from(now));
    if !config.secrets.is_empty() {
        let signatures: Vec<String> = config.secrets.iter().map(|secret| secret.sign(&id, now, &body)).collect();
        headers.insert(SIGNATURE, value(&signatures.join(" "))?);
    }
    if let Some(trace) = trace {
        headers.insert(TRACE, value(&trace.to_string())?);
    }
    headers.insert(KEY, value(&id)?);
    headers.insert(ID, value(&id)?);
    Ok(request.map(|()| full(body)))
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    text.parse().map_err(|_| Failure::Url)
}

/// The id of a message in every attempt: each revision of a result is a separate message. It has no full stop, which
/// separates the parts that are signed.
fn id(record: &Record<'_>) -> String {
    match record.write {
        Write::Insert => record.id.to_string(),
        Write::Upsert(revision) => format!("{}-{revision}", record.id),
    }
}

fn body(shape: MessageShape, record: &Record<'_>) -> Bytes {
    match shape {
        MessageShape::Payload => Bytes::copy_from_slice(record.payload),
        MessageShape::Envelope => {
            let mut body = br#"{"type":"#.to_vec();
            write_text(&mut body, record.type_name.as_bytes());
            body.extend_from_slice(format!(r#","timestamp":"{}","data":"#, rfc3339::format(record.time())).as_bytes());
            body.extend_from_slice(record.payload);
            body.push(b'}');
            body.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    fn record(write: Write) -> Record<'static> {
        Record {
            sequence: 12,
            id: EventId([0x11; 16]),
            type_name: "access",
            source: "",
            received_at: 1_760_000_000_000_001,
            event_time: None,
            write,
            payload: b"{\"a\": 1}",
        }
    }

    #[test]
    fn message_has_the_payload_or_the_standards_form() {
        let record = record(Write::Insert);
        assert_eq!(body(MessageShape::Payload, &record), record.payload);
        let envelope = br#"{"type":"access","timestamp":"2025-10-09T08:53:20.000001Z","data":{"a": 1}}"#;
        assert_eq!(body(MessageShape::Envelope, &record), envelope.as_slice());
    }

    #[test]
    fn each_revision_is_a_message() {
        let event = id(&record(Write::Insert));
        let [first, second] = [1, 2].map(|revision| id(&record(Write::Upsert(revision))));
        assert!(event != first && first != second && first.starts_with(&event));
        assert!(!second.contains('.'), "{second}");
    }
}
