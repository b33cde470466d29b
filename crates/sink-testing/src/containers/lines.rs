//! Objects in the way that a reader of the documentation reads them.

use std::collections::BTreeMap;
use std::io::Read;

use event::EventId;
use serde_json::value::RawValue;

/// The events of an object with this name and these bytes.
#[must_use]
pub fn events(name: &str, bytes: &[u8]) -> Vec<(EventId, Vec<u8>)> {
    let mut text = String::new();
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    } else if name.ends_with(".zst") {
        zstd::Decoder::new(bytes).unwrap().read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes.to_vec()).unwrap();
    }
    text.lines().map(event).collect()
}

fn event(line: &str) -> (EventId, Vec<u8>) {
    let line: BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
    let id: String = serde_json::from_str(line["id"].get()).unwrap();
    let payload = match line.get("payload") {
        Some(payload) => payload.get().to_owned(),
        None => serde_json::from_str(line["payload_text"].get()).unwrap(),
    };
    (id.parse().unwrap(), payload.into_bytes())
}
