//! A line about an event that passes.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tap::{PAYLOAD_BYTES_MAX, Passing, Point};
use text::rfc3339;

#[derive(Serialize)]
struct LineJson<'a> {
    n: u64,
    at: &'static str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sink: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    r#type: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    /// From the receipt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    /// Of a payload that isn't shown as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_head: Option<String>,
}

/// The line with this number. Its time is that of the receipt; of a rejection or an outcome it is now.
pub(super) fn of(n: u64, at: Point, passing: &Passing<'_>) -> Bytes {
    let now = clock::unix_microseconds();
    let is_outcome = matches!(at, Point::Stored | Point::Dead);
    let has_text = |text: &str| (!text.is_empty()).then_some(());
    let head = passing.payload.map(|payload| &payload[..payload.len().min(PAYLOAD_BYTES_MAX)]);
    let payload = head.filter(|head| head.len() == passing.bytes).and_then(on_one_line);
    let line = LineJson {
        n,
        at: at.as_str(),
        time: rfc3339::format(if is_outcome { now } else { passing.received_at }),
        sink: has_text(passing.sink).map(|()| passing.sink),
        id: passing.id.map(|id| id.to_string()),
        r#type: passing.type_name,
        source: passing.source,
        position: passing.position.map(|(shard, sequence)| format!("{shard}:{sequence}")),
        after_ms: is_outcome.then(|| now.saturating_sub(passing.received_at) / 1_000),
        code: (at == Point::Refused).then_some(passing.reason),
        reason: (at == Point::Dead).then_some(passing.reason),
        pointer: passing.pointer,
        line: passing.line,
        bytes: (at != Point::Refused).then_some(passing.bytes),
        payload_head: head.filter(|_| payload.is_none()).map(|head| String::from_utf8_lossy(head).into_owned()),
        payload,
    };
    let mut text = serde_json::to_vec(&line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// A payload of valid JSON. Its line breaks are between its values: in strings they are escaped.
fn on_one_line(payload: &[u8]) -> Option<Box<RawValue>> {
    let text = str::from_utf8(payload).ok()?;
    RawValue::from_string(text.replace(['\n', '\r'], " ").trim().to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(at: Point, passing: &Passing<'_>) -> Value {
        let line = of(7, at, passing);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1, "{line:?}");
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn payload_is_on_one_line_or_cut() {
        let pretty = b" {\n  \"a\": 1.50,\r\n  \"b\": \"x\\ny\"}\n";
        let of = |payload: &[u8]| {
            read(Point::Accepted, &Passing { bytes: payload.len(), payload: Some(payload), ..Passing::default() })
        };
        let line = of(pretty);
        assert_eq!((&line["payload"]["b"], &line["payload_head"]), (&"x\ny".into(), &Value::Null));
        let long = format!("\"{}\"", "é".repeat(4_000));
        let line = of(long.as_bytes());
        assert_eq!((&line["payload"], &line["bytes"]), (&Value::Null, &8_002.into()));
        assert!(line["payload_head"].as_str().is_some_and(|head| head.starts_with("\"éé") && head.len() < 4_100));
        let hidden = read(Point::Received, &Passing { bytes: 9, ..Passing::default() });
        assert_eq!((&hidden["payload"], &hidden["payload_head"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn outcome_has_sink_position_and_reason() {
        let passing = Passing { sink: "warehouse", position: Some((1, 90)), reason: "410 Gone", ..Passing::default() };
        let line = read(Point::Dead, &passing);
        assert_eq!(
            (&line["sink"], &line["position"], &line["reason"]),
            (&"warehouse".into(), &"1:90".into(), &"410 Gone".into())
        );
        assert!(line["after_ms"].is_i64() && line["code"].is_null());
        let line = read(
            Point::Refused,
            &Passing { reason: "schema", pointer: Some("/a"), line: Some(3), ..Passing::default() },
        );
        assert_eq!((&line["code"], &line["pointer"], &line["line"]), (&"schema".into(), &"/a".into(), &3.into()));
        assert!(line["bytes"].is_null() && line["reason"].is_null());
    }
}
