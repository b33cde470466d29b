//! What stands beside a payload where a store keeps both as JSON: the members that say which event it is, whose, and when.

use std::io::Write;

use event::{Position, rfc3339};

use crate::{Record, Write as Kind};

/// Writes the members of a record that stands in `shard`, without the braces around them:
/// `"id":"…","type":"…","source":"…","received_at":"…"`, `"event_time"` and `"revision"` where it has them, and `"position":"…"`.
pub(crate) fn write_members(output: &mut Vec<u8>, shard: u16, record: &Record<'_>) {
    let position = Position { shard, sequence: record.sequence };
    // Writing to memory can't fail.
    let _ = write!(output, r#""id":"{}","type":"#, record.id);
    write_text(output, record.type_name.as_bytes());
    output.extend_from_slice(br#","source":"#);
    write_text(output, record.source.as_bytes());
    let _ = write!(output, r#","received_at":"{}""#, rfc3339::format(record.received_at));
    if let Some(time) = record.event_time {
        let _ = write!(output, r#","event_time":"{}""#, rfc3339::format(time));
    }
    if let Kind::Upsert(revision) = record.write {
        let _ = write!(output, r#","revision":{revision}"#);
    }
    let _ = write!(output, r#","position":"{position}""#);
}

/// Writes a JSON string (RFC 8259 §7). The bytes are UTF-8: they were checked when they were accepted.
pub(crate) fn write_text(output: &mut Vec<u8>, text: &[u8]) {
    output.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => output.extend_from_slice(&[b'\\', *byte]),
            b'\n' => output.extend_from_slice(b"\\n"),
            b'\r' => output.extend_from_slice(b"\\r"),
            b'\t' => output.extend_from_slice(b"\\t"),
            0..=0x1f => drop(write!(output, "\\u{byte:04x}")),
            _ => output.push(*byte),
        }
    }
    output.push(b'"');
}
