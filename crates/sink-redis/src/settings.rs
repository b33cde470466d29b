//! The settings of sinks of kind `redis`: the server, the keys and their values.

use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;

use crate::{
    Address, Deployment, InvalidKey, InvalidRedisUrl, KeyPattern, Redis, RedisConfig, RedisServerUrl, Sentinel,
    Structure,
};
use json::JsonPointer;
use settings::client::{self, ca, connections_max, each, timeout};
use settings::{
    Diagnostic, InvalidValue, POINTER, Section, Setting, SettingsReader, TEXTS, URL, Unset, parsed, pointer, words,
};

const KEY: &str = "{type}";
const SENTINELS: &str = "sentinels";
const CLUSTER: &str = "cluster";

const SETTINGS: &[Setting] = &[
    Setting::new(
        "url",
        URL,
        "`redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://` for TLS. Password only: `redis://:PASSWORD@HOST`. Percent-encode special \
         characters. Sentinels and clusters: [addresses](sinks.md#addresses-of-redis)",
    )
    .required()
    .example("\"redis://forebay:${REDIS_PASSWORD}@cache:6379/0\""),
    Setting::new(
        SENTINELS,
        TEXTS,
        "the [sentinels](../../guides/stores/redis.md#sentinel) that know the master: `HOST:PORT` each, or `redis://USER:PASSWORD@HOST:PORT`, or \
         `rediss://` for TLS",
    )
    .example("[\"one:26379\", \"two:26379\", \"three:26379\"]"),
    Setting::flag(CLUSTER, "`true` if it is a [cluster](../../guides/stores/redis.md#cluster)"),
    client::CA,
    Setting::choice("mode", &words(&MODES), "what events become").or(Unset::Text(MODES[0].0)),
    Setting::text(
        "key",
        "the key, or the channel: 1 to 256 bytes, not beginning with `forebay:`. `{type}` is the event's type, `{id}` its id (required with \
         `json`, else not allowed). Two sinks can't share one",
    )
    .or(Unset::Described("`{type}`, or `{type}:{id}` for `json`"))
    .example("\"{type}\""),
    Setting::new("field", POINTER, "the JSON pointer to what the field of a `hash` or `counter` is; a `hash` without it goes by ids")
        .or(Unset::Described("required for `counter`"))
        .example("\"/status\""),
    Setting::new("by", POINTER, "the JSON pointer to the integer that a `counter` adds")
        .or(Unset::Described("each event counts 1"))
        .example("\"/bytes\""),
    Setting::integer("max_entries", (1, i64::MAX), "how many entries a `stream` (about) or `list` keeps")
        .or(Unset::Described("all"))
        .example("1000000"),
    Setting { text: "how long the server may take for one script", ..client::TIMEOUT },
    Setting {
        default: Unset::Integer(RedisConfig::CONNECTIONS_MAX.get() as i64),
        text: "connections to the server, shared by [lanes](../../concepts/glossary.md#lane). In a cluster each lane has instead one to each node \
               that it needs, while it calls once a minute",
        ..client::MAX_CONNECTIONS
    },
];

/// The values of `mode`.
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

/// Reads the settings; a relative `ca` starts at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<RedisConfig> {
    let (server, deployment) = place(reader, section);
    let ca = ca(reader, section, folder);
    let timeout = timeout(reader, section);
    let connections_max = connections_max(reader, section).unwrap_or(RedisConfig::CONNECTIONS_MAX);
    let structure = structure(reader, section);
    let key = key(reader, section, structure.as_ref());
    let (server, deployment, key, structure) = (server?, deployment?, key?, structure?);
    Some(RedisConfig { server, deployment, ca, key, structure, timeout, connections_max })
}

/// Reads the layout from a gateway's table for a writer's sink.
fn read_layout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<(&'static str, String)> {
    let structure = structure(reader, section);
    let key = key(reader, section, structure.as_ref());
    let structure = structure.map(|structure| ("mode", structure.to_string()));
    structure.into_iter().chain(key.map(|key| ("key", key.to_string()))).collect()
}

/// Reads the server, and how to find it.
fn place(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> (Option<RedisServerUrl>, Option<Deployment>) {
    let mistakes = reader.errors();
    let is_watched = section.get(SENTINELS).is_some() || reader.texts(section, SENTINELS).is_some();
    let sentinels = each(reader, section, SENTINELS, sentinel);
    if let Some(is_cluster) = reader.boolean(section, CLUSTER).filter(|found| found.value) {
        if is_watched {
            let title = format!("`{}` and `{SENTINELS}` conflict", section.key_path(CLUSTER));
            reader.push(Diagnostic::new(title, is_cluster.span, "the nodes of a cluster know their masters"));
        }
        let help = "add some of its nodes, as in url = \"redis://USER:PASSWORD@one:6379,two:6379\"";
        let (server, more) = reader.required(section, "url", help, nodes).unzip();
        return (server, more.map(Deployment::Cluster));
    }
    if !is_watched {
        let help = "add the server, as in url = \"redis://USER:PASSWORD@HOST:PORT\"";
        return (
            reader.required(section, "url", help, parsed("is not the URL of a Redis server")),
            Some(Deployment::Alone),
        );
    }
    if sentinels.is_empty() && reader.errors() == mistakes {
        let help = "name them, as in sentinels = [\"one:26379\", \"two:26379\", \"three:26379\"]";
        reader.missing(section, SENTINELS, help);
    }
    let help = "add the sentinels' name of the master, as in url = \"redis://USER:PASSWORD@mymaster\"";
    let master = reader.required(section, "url", help, master);
    (master, (reader.errors() == mistakes).then_some(Deployment::Watched(sentinels)))
}

fn structure(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Structure> {
    let mode = reader.text_or(section, "mode", MODES[0].0, mode)?;
    let field = reader.text(section, "field", pointer::parse);
    let by = reader.text(section, "by", pointer::parse);
    let entries_max = reader.integer(section, "max_entries", entries);
    let given = [
        ("field", field.as_ref().map(|found| &found.span)),
        ("by", by.as_ref().map(|found| &found.span)),
        ("max_entries", entries_max.as_ref().map(|found| &found.span)),
    ];
    let mut is_wrong = false;
    for (setting, span) in given {
        if let Some(span) = span.filter(|_| !mode.takes(setting)) {
            let title = format!("unused setting `{}` in this mode", section.key_path(setting));
            let modes: Vec<&str> =
                MODES.iter().filter(|(_, mode)| mode.takes(setting)).map(|(name, _)| *name).collect();
            let label = format!("only for mode {}", modes.join(" and "));
            reader.push(Diagnostic::new(title, span.clone(), label));
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

fn counted(reader: &mut SettingsReader<'_>, section: &Section<'_>, field: Option<JsonPointer>) -> Option<JsonPointer> {
    if field.is_none() {
        reader.missing(section, "field", "set the value to count by, as in field = \"/status\"");
    }
    field
}

/// Reads the keys. If each event has a separate key, the pattern must contain its id, and otherwise it must not.
fn key(reader: &mut SettingsReader<'_>, section: &Section<'_>, structure: Option<&Structure>) -> Option<KeyPattern> {
    let needs_id = structure.map(Structure::needs_id);
    let checked = |text: &str| {
        let pattern: KeyPattern =
            text.parse().map_err(|error: InvalidKey| InvalidValue::new("isn't a valid key", error.to_string()))?;
        match (pattern.has_id(), needs_id) {
            (true, Some(false)) => {
                Err(InvalidValue::new("would be another key for each event", "only mode json allows {id}"))
            }
            (false, Some(true)) => {
                Err(InvalidValue::new("would be one key for all events", "mode json needs {id} in it"))
            }
            _ => Ok(pattern),
        }
    };
    reader.text_or(section, "key", if needs_id == Some(true) { "{type}:{id}" } else { KEY }, checked)
}

fn mode(text: &str) -> Result<Mode, InvalidValue> {
    settings::one_of(&MODES, text, "is not a mode")
}

fn nodes(text: &str) -> Result<(RedisServerUrl, Vec<Address>), InvalidValue> {
    RedisServerUrl::nodes(text).map_err(|error| InvalidValue::new("is not the URL of a cluster", error.to_string()))
}

fn master(text: &str) -> Result<RedisServerUrl, InvalidValue> {
    let wanted = "expected redis://USER:PASSWORD@NAME/NUMBER with the sentinels' name of the master, and no port";
    match RedisServerUrl::master(text) {
        Err(InvalidRedisUrl::Port) => Err(InvalidValue::new("names no master", wanted)),
        other => other.map_err(|error| InvalidValue::new("is not the URL of a Redis server", error.to_string())),
    }
}

fn sentinel(text: &str) -> Result<Sentinel, InvalidValue> {
    let wanted = "expected HOST:PORT, or redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS";
    text.parse().map_err(|_: InvalidRedisUrl| InvalidValue::new("contains an invalid address of a sentinel", wanted))
}

fn entries(number: i64) -> Result<u64, InvalidValue> {
    u64::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| InvalidValue::new("is out of range", "expected at least 1"))
}

/// Sinks of kind `redis`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS],
    urls: &["url", "sentinels"],
    is_fenced: true,
    layout: &[("mode", &["mode", "field", "by", "max_entries"]), ("key", &["key"])],
    read_layout,
    ..SinkKind::new("redis", |reader, section, folders| Some(Box::new(read(reader, section, folders.configuration)?)))
};

impl StoreConfig for RedisConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Redis::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.place(), self.key.to_string()];
        Some(Destination { id, what: "key", another: "another `url` or `key`" })
    }

    fn layout(&self) -> Layout {
        vec![("mode", self.structure.to_string()), ("key", self.key.to_string())]
    }
}

impl fmt::Display for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis {}, {} {}", self.place(), self.structure, self.key)
    }
}
