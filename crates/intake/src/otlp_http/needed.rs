//! The memory that a request needs while it is decoded: that of its largest record, since records are written one after the other.

use limits::EVENT_BYTES_MAX;

use crate::protobuf;

/// The buffers for the resource and the scope, and small things.
const FIXED: usize = 1024 * 1024;
/// A control character of one byte becomes an escape of six, and a buffer that grows doubles.
const WRITTEN: usize = 12;
/// A key of three bytes, in an entry of seven, has a slot of 25 in a set that doubles as it grows and is then copied.
const KEYS: usize = 12;
/// In JSON a record doesn't become longer, and an entry has at least 18 bytes.
const JSON: usize = 6;

/// Of a body in JSON. Finding its largest record would take as long as checking it.
pub(super) fn of_json(body: &[u8]) -> usize {
    // A body with halves of surrogate pairs is copied.
    let has_escapes = memchr_u(body);
    FIXED + JSON * body.len().min(EVENT_BYTES_MAX) + if has_escapes { body.len() } else { 0 }
}

fn memchr_u(body: &[u8]) -> bool {
    body.windows(3).any(|window| window.eq_ignore_ascii_case(b"\\ud"))
}

/// Of a body in protobuf.
pub(super) fn of_protobuf(body: &[u8]) -> usize {
    FIXED + (WRITTEN + KEYS) * largest(body, 2).min(EVENT_BYTES_MAX)
}

/// The largest message `levels` levels below this one.
fn largest(message: &[u8], levels: usize) -> usize {
    let messages = protobuf::fields(message).map_while(Result::ok).filter_map(|field| field.value.bytes());
    messages.map(|inner| if levels == 0 { inner.len() } else { largest(inner, levels - 1) }).max().unwrap_or(0)
}
