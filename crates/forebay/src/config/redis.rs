//! What sinks of kind `redis` have: where the server is, which keys, and what stands under them.

use std::path::Path;

use ::sink::redis::{InvalidKey, InvalidServer, KeyPattern, RedisConfig, Server, Structure};
use pipeline::pointer::JsonPointer;

use super::pointer;
use super::reader::{self, Reader, Wrong};
use super::report::Mistake;
use super::section::Section;
use super::store::{ca, timeout};

/// The settings.
pub(super) const KEYS: &[&str] =
    &["kind", "from", "max_backlog", "url", "ca", "mode", "key", "field", "by", "max_entries", "timeout"];
const KEY: &str = "{type}";

/// What `mode` may say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Stream,
    List,
    Set,
    Hash,
    Json,
    Counter,
    Publish,
}

const MODES: [(&str, Mode); 7] = [
    ("stream", Mode::Stream),
    ("list", Mode::List),
    ("set", Mode::Set),
    ("hash", Mode::Hash),
    ("json", Mode::Json),
    ("counter", Mode::Counter),
    ("publish", Mode::Publish),
];

impl Mode {
    const fn takes(self, setting: &str) -> bool {
        match setting.as_bytes() {
            b"field" => matches!(self, Self::Hash | Self::Counter),
            b"by" => matches!(self, Self::Counter),
            _ => matches!(self, Self::Stream | Self::List),
        }
    }
}

/// Reads them; a relative `ca` leads from `folder`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, folder: &Path) -> Option<RedisConfig> {
    let help = "add the server, as in url = \"redis://USER:PASSWORD@HOST:PORT\"";
    let server = reader.required(section, "url", help, server);
    let ca = ca(reader, section, folder);
    let timeout = timeout(reader, section);
    let structure = structure(reader, section);
    let key = key(reader, section, structure.as_ref());
    Some(RedisConfig { server: server?, ca, key: key?, structure: structure?, timeout })
}

fn structure(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Structure> {
    let mode = reader.text_or(section, "mode", MODES[0].0, mode)?;
    let field = reader.text(section, "field", pointer::parse);
    let by = reader.text(section, "by", pointer::parse);
    let entries_max = reader.integer(section, "max_entries", entries);
    let given = [
        ("field", field.as_ref().map(|found| &found.spot)),
        ("by", by.as_ref().map(|found| &found.spot)),
        ("max_entries", entries_max.as_ref().map(|found| &found.spot)),
    ];
    let mut is_wrong = false;
    for (setting, spot) in given {
        if let Some(spot) = spot.filter(|_| !mode.takes(setting)) {
            let title = format!("`{}` has no meaning in this mode", section.key_path(setting));
            let modes: Vec<&str> =
                MODES.iter().filter(|(_, mode)| mode.takes(setting)).map(|(name, _)| *name).collect();
            let label = format!("only for mode {}", modes.join(" and "));
            reader.push(Mistake::new(title, spot.clone(), label));
            is_wrong = true;
        }
    }
    if is_wrong {
        return None;
    }
    let entries_max = entries_max.map(|found| found.value);
    let (field, by) = (field.map(|found| found.value), by.map(|found| found.value));
    Some(match (mode, field) {
        (Mode::Stream, _) => Structure::Stream { entries_max },
        (Mode::List, _) => Structure::List { entries_max },
        (Mode::Set, _) => Structure::Set,
        (Mode::Hash, None) => Structure::Hash,
        (Mode::Hash, Some(field)) => Structure::Latest { field },
        (Mode::Json, _) => Structure::Strings,
        (Mode::Publish, _) => Structure::Publish,
        (Mode::Counter, field) => Structure::Counter { field: counted(reader, section, field)?, by },
    })
}

fn counted(reader: &mut Reader<'_>, section: &Section<'_>, field: Option<JsonPointer>) -> Option<JsonPointer> {
    if field.is_none() {
        reader.missing(section, "field", "say what is counted apart, as in field = \"/status\"");
    }
    field
}

/// The keys. Where each event has one of its own, its id must be in it, and nowhere else.
fn key(reader: &mut Reader<'_>, section: &Section<'_>, structure: Option<&Structure>) -> Option<KeyPattern> {
    let needs_id = structure.map(Structure::needs_id);
    let checked = |text: &str| {
        let pattern: KeyPattern =
            text.parse().map_err(|error: InvalidKey| Wrong::new("can't be a key", error.to_string()))?;
        match (pattern.has_id(), needs_id) {
            (true, Some(false)) => Err(Wrong::new("would be another key for each event", "only mode json takes {id}")),
            (false, Some(true)) => Err(Wrong::new("would be one key for all events", "mode json needs {id} in it")),
            _ => Ok(pattern),
        }
    };
    reader.text_or(section, "key", if needs_id == Some(true) { "{type}:{id}" } else { KEY }, checked)
}

fn mode(text: &str) -> Result<Mode, Wrong> {
    reader::one_of(&MODES, text, "is not a mode")
}

fn server(text: &str) -> Result<Server, Wrong> {
    text.parse().map_err(|error: InvalidServer| Wrong::new("is not the URL of a Redis server", error.to_string()))
}

fn entries(number: i64) -> Result<u64, Wrong> {
    u64::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| Wrong::new("is out of range", "wanted at least 1"))
}
