//! One event as a document.

use std::io::Write;
use std::sync::LazyLock;

use json::JsonPointer;
use text::rfc3339;

use super::config::{DocumentShape, ElasticsearchConfig};
use sink::{Record, envelope};

/// The member that tools of these stores need, and without which data streams reject documents.
pub(super) const TIMESTAMP: &str = "@timestamp";
/// The member with the whole payload.
pub(super) const PAYLOAD: &str = "payload";

static TIMESTAMP_POINTER: LazyLock<JsonPointer> =
    LazyLock::new(|| format!("/{TIMESTAMP}").parse().expect("a slash and a name are a pointer"));

/// Writes the document of a record in `shard`, without a line break.
pub(super) fn write(document: &mut Vec<u8>, config: &ElasticsearchConfig, shard: u16, record: &Record<'_>) {
    let members = members(record.payload).filter(|_| config.shape == DocumentShape::Payload);
    let is_timed = config.has_timestamp && (members.is_none() || !has_timestamp(record.payload));
    document.push(b'{');
    if is_timed {
        write_timestamp(document, record);
    }
    if let Some(members) = members {
        if is_timed && members != b"}" {
            document.push(b',');
        }
        return write_folded(document, members);
    }
    if is_timed {
        document.push(b',');
    }
    if config.shape == DocumentShape::Envelope {
        envelope::write_members(document, shard, record);
        document.push(b',');
    }
    write_payload(document, record);
}

/// Whether a document of this shape has a time that isn't the payload's.
pub(super) fn has_own_timestamp(shape: DocumentShape, payload: &[u8]) -> bool {
    shape == DocumentShape::Envelope || members(payload).is_none_or(|_| !has_timestamp(payload))
}

/// The text after the opening brace of an object, including its closing brace; `None` for another value.
pub(super) fn members(payload: &[u8]) -> Option<&[u8]> {
    payload.trim_ascii().strip_prefix(b"{").map(<[u8]>::trim_ascii_start)
}

fn has_timestamp(payload: &[u8]) -> bool {
    // Payloads are UTF-8: they were checked when they were accepted.
    let text = std::str::from_utf8(payload).unwrap_or_default().trim_ascii();
    // Names may have escapes.
    let may_have = text.contains(TIMESTAMP) || text.contains('\\');
    may_have && TIMESTAMP_POINTER.lookup(text).is_some()
}

fn write_timestamp(document: &mut Vec<u8>, record: &Record<'_>) {
    // Writing to memory can't fail.
    let _ = write!(document, r#""{TIMESTAMP}":"{}""#, rfc3339::format(record.time()));
}

fn write_payload(document: &mut Vec<u8>, record: &Record<'_>) {
    let _ = write!(document, r#""{PAYLOAD}":"#);
    write_folded(document, record.payload);
    document.push(b'}');
}

/// The text on one line. In a JSON text line breaks are only between tokens, where a space is equivalent.
fn write_folded(document: &mut Vec<u8>, json: &[u8]) {
    let start = document.len();
    document.extend_from_slice(json);
    for byte in &mut document[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;
    use sink::Write as Kind;

    fn document(shape: DocumentShape, record: &Record<'_>) -> String {
        shown(shape, true, record)
    }

    fn shown(shape: DocumentShape, has_timestamp: bool, record: &Record<'_>) -> String {
        let config = ElasticsearchConfig { shape, has_timestamp, ..super::super::tests::config() };
        let mut document = Vec::new();
        write(&mut document, &config, 3, record);
        String::from_utf8(document).unwrap()
    }

    fn record(payload: &str) -> Record<'_> {
        Record {
            sequence: 12,
            id: EventId([0x11; 16]),
            type_name: "access",
            source: "a\"b",
            received_at: 1_760_000_000_000_001,
            event_time: None,
            write: Kind::Insert,
            payload: payload.as_bytes(),
        }
    }

    #[test]
    fn document_has_the_payloads_members_and_a_time() {
        const TIME: &str = r#""@timestamp":"2025-10-09T08:53:20.000001Z""#;
        for (payload, expected) in [
            ("{\"a\" :\t1e0}", format!("{{{TIME},\"a\" :\t1e0}}")),
            ("{\r\n\t\"a\": \"\\n\"\n}", format!("{{{TIME},\"a\": \"\\n\" }}")),
            (" { } ", format!("{{{TIME}}}")),
            ("{}", format!("{{{TIME}}}")),
            ("7", format!("{{{TIME},\"payload\":7}}")),
            ("[1,\n{\"@timestamp\":1}]", format!("{{{TIME},\"payload\":[1, {{\"@timestamp\":1}}]}}")),
            ("{\"b\":{\"@timestamp\":1}}", format!("{{{TIME},\"b\":{{\"@timestamp\":1}}}}")),
            ("{\"@timestamp\": 5}", "{\"@timestamp\": 5}".to_owned()),
            ("{\"\\u0040timestamp\": 5, \"b\": 1}", "{\"\\u0040timestamp\": 5, \"b\": 1}".to_owned()),
        ] {
            assert_eq!(document(DocumentShape::Payload, &record(payload)), expected, "{payload}");
            let own = has_own_timestamp(DocumentShape::Payload, payload.as_bytes());
            assert_eq!(own, expected.contains(TIME), "{payload}");
            serde_json::from_str::<serde_json::Value>(&expected).unwrap();
        }
    }

    #[test]
    fn no_time_is_added_without_timestamp() {
        for (payload, expected) in [
            ("{\"a\" :\t1e0}", "{\"a\" :\t1e0}"),
            (" { } ", "{}"),
            ("[1]", "{\"payload\":[1]}"),
            ("{\"@timestamp\": 5}", "{\"@timestamp\": 5}"),
        ] {
            assert_eq!(shown(DocumentShape::Payload, false, &record(payload)), expected);
        }
        let envelope = shown(DocumentShape::Envelope, false, &record("{}"));
        assert!(envelope.starts_with("{\"id\":\"1111") && envelope.ends_with(",\"payload\":{}}"), "{envelope}");
    }

    #[test]
    fn envelope_has_all_fields_of_the_event() {
        let record = Record { write: Kind::Upsert(7), event_time: Some(0), ..record("{\n\"a\": 1}") };
        let expected = concat!(
            r#"{"@timestamp":"1970-01-01T00:00:00.000000Z","id":"11111111-1111-1111-1111-111111111111","type":"access","#,
            r#""source":"a\"b","received_at":"2025-10-09T08:53:20.000001Z","event_time":"1970-01-01T00:00:00.000000Z","#,
            r#""revision":7,"position":"3:12","payload":{ "a": 1}}"#
        );
        assert_eq!(document(DocumentShape::Envelope, &record), expected);
    }
}
