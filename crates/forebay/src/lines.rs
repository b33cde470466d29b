//! Lines of JSON that the admin port streams.

use bytes::Bytes;
use serde_json::json;
use text::rfc3339;

/// A line that says only that the stream lives.
pub(crate) fn beat() -> Bytes {
    line(&json!({"beat": rfc3339::format(clock::unix_microseconds())}))
}

/// A value as a line.
pub(crate) fn line(value: &serde_json::Value) -> Bytes {
    format!("{value}\n").into()
}
