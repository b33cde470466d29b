//! The memory that a request needs while it is decoded: that of its largest record, since records are written one after the other.

use limits::EVENT_BYTES_MAX;

use super::envelope::Signal;
use super::shared::SHARED_BYTES_MAX;
use crate::protobuf;

/// Small things.
const FIXED: usize = 4 * 1024;
/// A control character of one byte becomes an escape of six, and a buffer that grows doubles.
const WRITTEN: usize = 12;
/// A key of three bytes, in an entry of seven, has a slot of 25 bytes in a set. The set doubles as it grows, and is then copied.
const KEYS: usize = 12;
/// In JSON a record doesn't become longer, and an entry has at least 18 bytes.
const JSON: usize = 6;
/// A record with its resource, its scope and its metric.
const SHARED_AND_RECORD_MAX: usize = 3 * SHARED_BYTES_MAX + EVENT_BYTES_MAX;

/// Of a body in JSON. Finding its largest record would take as long as checking it.
pub(super) fn of_json(body: &[u8]) -> usize {
    // A body with halves of surrogate pairs is copied.
    let may_be_copied = body.windows(3).any(|window| window.eq_ignore_ascii_case(b"\\ud"));
    FIXED + JSON * body.len().min(SHARED_AND_RECORD_MAX) + if may_be_copied { body.len() } else { 0 }
}

/// Of a body in protobuf.
pub(super) fn of_protobuf(signal: Signal, body: &[u8]) -> usize {
    let shared = |path: &[u32]| WRITTEN * largest(body, path).min(SHARED_BYTES_MAX);
    let (record, metric) = match signal {
        Signal::Logs | Signal::Traces => (largest(body, &[1, 2, 2]), 0),
        // A metric has one of several kinds of data, and its name may be in front of any of them.
        Signal::Metrics => (largest(body, &[1, 2, 2, ANY, 1]), shared(&[1, 2, 2])),
    };
    FIXED + shared(&[1, 1]) + shared(&[1, 2, 1]) + metric + (WRITTEN + KEYS) * record.min(EVENT_BYTES_MAX)
}

/// Any field that has bytes.
const ANY: u32 = 0;

/// Bytes of the largest message at a path of field numbers.
fn largest(message: &[u8], path: &[u32]) -> usize {
    let Some((wanted, rest)) = path.split_first() else { return message.len() };
    let fields = protobuf::fields(message).map_while(Result::ok);
    let wanted = fields.filter(|field| *wanted == ANY || field.number == *wanted);
    wanted.filter_map(|field| field.value.bytes()).map(|inner| largest(inner, rest)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_record_decides() {
        // Two resources with one scope each; their records have 1 and 3 bytes.
        let body = b"\x0a\x05\x12\x03\x12\x01x\x0a\x09\x0a\x00\x12\x05\x12\x03xyz";
        assert_eq!(largest(body, &[1, 2, 2]), 3);
        assert_eq!(of_protobuf(Signal::Logs, body), FIXED + 3 * (WRITTEN + KEYS));
        assert_eq!(of_json(b"{}"), FIXED + 12);
    }
}
