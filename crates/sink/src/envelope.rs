//! The members next to a payload, if a store keeps both as JSON: they say which event it is, whose, and when.

use std::io::Write;

use text::rfc3339;

use crate::{Record, Write as Kind};

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Writes the members of a record that is in `shard`, without the braces around them:
/// `"id":"…","type":"…","source":"…","received_at":"…"`, `"event_time"` and `"revision"` if it has them, and
/// `"position":"…"`.
pub fn write_members(output: &mut Vec<u8>, shard: u16, record: &Record<'_>) {
    for part in [br#""id":""#.as_slice(), &record.id.text(), br#"","type":"#] {
        output.extend_from_slice(part);
    }
    write_text(output, record.type_name.as_bytes());
    output.extend_from_slice(br#","source":"#);
    write_text(output, record.source.as_bytes());
    write_time(output, br#","received_at":""#, record.received_at);
    if let Some(time) = record.event_time {
        write_time(output, br#","event_time":""#, time);
    }
    if let Kind::Upsert(revision) = record.write {
        output.extend_from_slice(br#","revision":"#);
        write_number(output, revision);
    }
    output.extend_from_slice(br#","position":""#);
    write_number(output, shard.into());
    output.push(b':');
    write_number(output, record.sequence);
    output.push(b'"');
}

fn write_time(output: &mut Vec<u8>, before: &[u8], time: i64) {
    for part in [before, &rfc3339::text(time), b"\""] {
        output.extend_from_slice(part);
    }
}

/// Without formatting, which takes longer than everything else in a line.
fn write_number(output: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            return output.extend_from_slice(&digits[start..]);
        }
    }
}

/// Writes a JSON string (RFC 8259 §7). The bytes are UTF-8: they were checked when they were accepted.
pub fn write_text(output: &mut Vec<u8>, text: &[u8]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_display_form() {
        for number in [0, 7, 10, 99, 100, 1_000_000, u64::MAX - 1, u64::MAX] {
            let mut output = b"before ".to_vec();
            write_number(&mut output, number);
            assert_eq!(String::from_utf8(output).unwrap(), format!("before {number}"));
        }
    }
}
