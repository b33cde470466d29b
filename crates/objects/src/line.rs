//! One event as a line of an object: its payload alone, or with the event's other fields.
//!
//! ```text
//! {"a": 1}
//! {"id":"…","type":"access","source":"","received_at":"2026-11-21T13:00:00.140466Z","position":"0:12","payload":{"a": 1}}
//! ```
//!
//! The payload is unchanged, byte for byte. Only a payload with a line break between its parts doesn't fit in a line.
//! Alone it has spaces instead of line breaks. In an envelope its text is a JSON string, `payload_text`, instead of
//! `payload`.

use sink::Record;
use sink::envelope::{write_members, write_text};

/// The content of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The payload.
    #[default]
    Payload,
    /// The payload, with the event's other fields.
    Envelope,
}

/// Bytes of an envelope without the payload and the names: id, time, position, keys, the line's end.
const FRAME_BYTES: usize = 160;

/// The approximate number of bytes of the line of a record with such a type, source and payload.
#[must_use]
pub const fn line_bytes(line: Line, type_name: &str, source: &str, payload: &[u8]) -> u64 {
    let frame = match line {
        Line::Payload => 1,
        Line::Envelope => FRAME_BYTES + type_name.len() + source.len(),
    };
    (frame + payload.len()) as u64
}

/// Writes the line of `record`, which is in `shard`, with its end.
pub(super) fn write(output: &mut Vec<u8>, line: Line, shard: u16, record: &Record<'_>) {
    match line {
        Line::Payload => write_payload(output, record.payload),
        Line::Envelope => write_envelope(output, shard, record),
    }
}

fn has_line_break(payload: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', payload).is_some()
}

/// Line breaks within a JSON text are white space: those of its strings are escaped (RFC 8259 §7).
fn write_payload(output: &mut Vec<u8>, payload: &[u8]) {
    if has_line_break(payload) {
        output.extend(payload.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    } else {
        output.extend_from_slice(payload);
    }
    output.push(b'\n');
}

fn write_envelope(line: &mut Vec<u8>, shard: u16, record: &Record<'_>) {
    line.push(b'{');
    write_members(line, shard, record);
    line.push(b',');
    if has_line_break(record.payload) {
        line.extend_from_slice(br#""payload_text":"#);
        write_text(line, record.payload);
    } else {
        line.extend_from_slice(br#""payload":"#);
        line.extend_from_slice(record.payload);
    }
    line.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;
    use sink::Write as Kind;

    fn record(payload: &[u8]) -> Record<'_> {
        Record {
            sequence: 12,
            id: EventId([0x11; 16]),
            type_name: "access",
            source: "a\"b",
            received_at: 1_760_000_000_000_001,
            event_time: None,
            write: Kind::Insert,
            payload,
        }
    }

    fn shown(line: Line, record: &Record<'_>) -> String {
        let mut output = Vec::new();
        write(&mut output, line, 3, record);
        String::from_utf8(output).unwrap()
    }

    fn line(record: &Record<'_>) -> String {
        shown(Line::Envelope, record)
    }

    #[test]
    fn payload_with_line_breaks_becomes_one_line() {
        for (payload, expected) in [
            ("{\"a\" :\t1e0}", "{\"a\" :\t1e0}\n"),
            ("{\r\n\t\"a\": \"\\n\"\n}", "{  \t\"a\": \"\\n\" }\n"),
            ("null", "null\n"),
        ] {
            assert_eq!(shown(Line::Payload, &record(payload.as_bytes())), expected);
            assert_eq!(line_bytes(Line::Payload, "access", "a", payload.as_bytes()), expected.len() as u64);
        }
    }

    #[test]
    fn payload_in_an_envelope_is_unchanged() {
        let expected = concat!(
            r#"{"id":"11111111-1111-1111-1111-111111111111","type":"access","source":"a\"b","#,
            r#""received_at":"2025-10-09T08:53:20.000001Z","position":"3:12","payload":{"a" :	1e0}}"#,
            "\n"
        );
        let record = record(b"{\"a\" :\t1e0}");
        assert_eq!(line(&record), expected);
        assert!(expected.len() as u64 <= line_bytes(Line::Envelope, "access", "a\"b", record.payload));
    }

    #[test]
    fn payload_with_line_breaks_becomes_text() {
        let line = line(&record(b"{\r\n\t\"a\": \"\\n\"\n}"));
        assert!(line.ends_with("\"payload_text\":\"{\\r\\n\\t\\\"a\\\": \\\"\\\\n\\\"\\n}\"}\n"), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn results_have_their_revision_and_events_their_time() {
        let line = line(&Record { write: Kind::Upsert(7), event_time: Some(0), ..record(b"1") });
        assert!(line.contains(r#","event_time":"1970-01-01T00:00:00.000000Z","revision":7,"position""#), "{line}");
    }
}
