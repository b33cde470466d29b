//! The description of an object for readers of the store: a JSON text that says what the object holds. With it a reader
//! can check whether the object is complete, and whether all objects exist. Its format is described in
//! `docs/guides/stores/directory.md`.

use std::fmt::{Display, Write};

use event::Position;
use text::{hex, rfc3339};

use super::sealed::{Edge, Sealed};
use super::{Codec, Line, Manifest};
use sink::envelope::write_text;

/// The number of the format: with envelopes in lines, with payloads in lines, or without lines. A reader of one format
/// would misread another.
const fn format(line: Line, codec: Codec) -> u32 {
    match (codec, line) {
        (Codec::Parquet, _) => 3,
        (_, Line::Envelope) => 1,
        (_, Line::Payload) => 2,
    }
}

/// The description of an object: the same text each time. `apart` is the number of attachments.
#[must_use]
pub fn text(manifest: &Manifest, sealed: &Sealed, apart: Option<u64>) -> Vec<u8> {
    let Manifest { lane, first, last, line, codec, previous, name, .. } = manifest;
    let mut fields = Fields(String::from("{"));
    fields.bare("format", format(*line, *codec));
    fields.text("file", name);
    fields.text("sink", &lane.sink);
    fields.text("origin", &lane.origin.to_string());
    fields.bare("shard", lane.shard);
    fields.bare("first", first);
    fields.bare("last", last);
    match previous {
        Some(previous) => fields.text("previous", previous),
        None => fields.bare("previous", "null"),
    }
    fields.text("codec", &codec.to_string());
    fields.bare("bytes", sealed.bytes);
    fields.text("sha256", &hex::encode(&sealed.sha256));
    fields.bare("line_bytes", sealed.line_bytes);
    fields.bare("records", sealed.records);
    let types: Vec<String> =
        sealed.by_type.iter().map(|(name, records)| format!("{}: {records}", quoted(name))).collect();
    fields.bare("types", format_args!("{{{}}}", types.join(", ")));
    if let Some(apart) = apart {
        fields.bare("objects", apart);
    }
    if let Some((first, last)) = sealed.edges {
        fields.bare("first_event", edge(lane.shard, first));
        fields.bare("last_event", edge(lane.shard, last));
    }
    fields.0.push_str("\n}\n");
    fields.0.into_bytes()
}

struct Fields(String);

impl Fields {
    fn bare(&mut self, key: &str, value: impl Display) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing to a string can't fail.
        let _ = write!(self.0, "{comma}\n  \"{key}\": {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.bare(key, quoted(value));
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    write_text(&mut quoted, text.as_bytes());
    String::from_utf8(quoted).unwrap_or_default()
}

fn edge(shard: u16, Edge { id, sequence, received_at }: Edge) -> String {
    let position = Position { shard, sequence };
    format!(r#"{{"id": "{id}", "position": "{position}", "received_at": "{}"}}"#, rfc3339::format(received_at))
}
