//! `[sinks.X]`: the stores that events go to.

mod copies;
mod display;
mod of_writers;
pub(super) mod parts;
mod place;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "elasticsearch")]
use ::sink::elasticsearch::ElasticsearchConfig;
#[cfg(feature = "nats")]
use ::sink::nats::NatsConfig;
#[cfg(feature = "s3")]
use ::sink::object::over_http::s3::S3Config;
#[cfg(feature = "swift")]
use ::sink::object::over_http::swift::SwiftConfig;
#[cfg(feature = "postgres")]
use ::sink::postgres::{Layout, PostgresConfig};
#[cfg(feature = "redis")]
use ::sink::redis::RedisConfig;
use ::sink::remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore};
#[cfg(feature = "webhook")]
use ::sink::webhook::WebhookConfig;
use ::sink::{DirectoryConfig, SqliteConfig, TableName};
use delivery::Begin;
use pipeline::storable::Flaws;

use super::directory;
use super::route::Route;
use super::serving::{self, Serving};
#[cfg(feature = "postgres")]
use super::shards::Shards;
use super::upstream::Upstreams;
use settings::{Diagnostic, InvalidValue, Section, SettingsReader, SourceSpan, nearest, size};

/// The settings that a sink of each kind has.
pub(super) const KINDS: &[(&str, &[&str])] = &[
    ("sqlite", &["kind", "from", "max_backlog", "max_dead_letters", "path", "table"]),
    ("directory", directory::KEYS),
    #[cfg(feature = "elasticsearch")]
    ("elasticsearch", super::elasticsearch::KEYS),
    #[cfg(feature = "nats")]
    ("nats", super::nats::KEYS),
    #[cfg(feature = "postgres")]
    ("postgres", super::postgres::KEYS),
    #[cfg(feature = "redis")]
    ("redis", super::redis::KEYS),
    #[cfg(feature = "swift")]
    ("swift", super::swift::KEYS),
    #[cfg(feature = "s3")]
    ("s3", super::s3::KEYS),
    #[cfg(feature = "webhook")]
    ("webhook", super::webhook::KEYS),
    ("writer", super::remote::KEYS),
    ("null", &["kind", "from", "max_backlog", "max_dead_letters"]),
];

const PATH: &str = "events.db";
const TABLE: &str = "events";
/// Bytes of a sink's name: it stands in every cursor and in many metrics.
const NAME_BYTES_MAX: usize = 64;

/// The name of a sink: a letter a-z or a digit, then letters, digits, `_` and `-`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SinkName(Arc<str>);

impl SinkName {
    pub(crate) fn new(text: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let first = text.bytes().next().is_some_and(letter);
        let good = first && text.len() <= NAME_BYTES_MAX && text.bytes().all(|b| letter(b) || b"_-".contains(&b));
        good.then(|| Self(text.into()))
    }

    /// The name as text, to be shared.
    pub(crate) const fn as_arc(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A store, and how it is delivered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SinkSettings {
    /// The store.
    pub(crate) store: SinkConfig,
    /// Bytes of the journal that may wait for it, if the configuration says how many.
    pub(crate) max_backlog: Option<u64>,
    /// Dead letters of it that are held before its lanes pause, if the configuration says how many.
    pub(crate) max_dead_letters: Option<u64>,
    /// Where new routes to it begin.
    pub(crate) from: Begin,
    /// How its objects are given back, if they are.
    pub(crate) serving: Option<Serving>,
}

impl fmt::Display for SinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.store)?;
        self.max_backlog.map_or(Ok(()), |bytes| write!(f, ", at most {bytes} bytes waiting"))?;
        self.max_dead_letters.map_or(Ok(()), |letters| write!(f, ", at most {letters} dead letters"))?;
        self.serving.as_ref().map_or(Ok(()), |_| f.write_str(", given back"))
    }
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SinkConfig {
    /// Takes everything and keeps nothing.
    Null,
    /// A table of an SQLite database; the path is absolute or relative to the working directory.
    Sqlite(SqliteConfig),
    /// Files of a directory; its path likewise.
    Directory(DirectoryConfig),
    /// Documents of an Elasticsearch or OpenSearch store.
    #[cfg(feature = "elasticsearch")]
    Elasticsearch(ElasticsearchConfig),
    /// A table of a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres(PostgresConfig),
    /// A stream of NATS JetStream.
    #[cfg(feature = "nats")]
    Nats(NatsConfig),
    /// Keys of a Redis server.
    #[cfg(feature = "redis")]
    Redis(RedisConfig),
    /// Objects in a container of Swift.
    #[cfg(feature = "swift")]
    Swift(SwiftConfig),
    /// Objects in a bucket of S3.
    #[cfg(feature = "s3")]
    S3(S3Config),
    /// Somebody's server.
    #[cfg(feature = "webhook")]
    Webhook(WebhookConfig),
    /// A sink of a writer.
    Remote(RemoteConfig),
    /// A sink of a writer that stores objects.
    RemoteObjects(RemoteObjectsConfig),
}

impl SinkConfig {
    /// The file or the directory that it stores in, if it stores on this machine.
    pub(crate) fn local_path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(config) => Some(&config.path),
            Self::Directory(config) => Some(&config.path),
            _ => None,
        }
    }

    /// Whether events can be read back from it.
    pub(crate) const fn can_be_read(&self) -> bool {
        match self {
            Self::Null | Self::Directory(_) | Self::RemoteObjects(_) => false,
            Self::Remote(config) => config.reads,
            #[cfg(feature = "elasticsearch")]
            Self::Elasticsearch(config) => config.can_read(),
            #[cfg(feature = "nats")]
            Self::Nats(_) => false,
            #[cfg(feature = "redis")]
            Self::Redis(_) => false,
            #[cfg(feature = "swift")]
            Self::Swift(_) => false,
            #[cfg(feature = "s3")]
            Self::S3(_) => false,
            #[cfg(feature = "webhook")]
            Self::Webhook(_) => false,
            Self::Sqlite(_) => true,
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => matches!(config.layout, Layout::Whole { .. }),
        }
    }

    /// What of JSON it can't store: types with a route to it refuse that before they are answered, unless they say otherwise.
    pub(crate) fn cannot_take(&self) -> Flaws {
        match self {
            Self::Null | Self::Sqlite(_) | Self::Directory(_) | Self::RemoteObjects(_) => Flaws::NONE,
            // Where the gateway's table doesn't say how the writer stores, what one of the ways can't take.
            Self::Remote(config) => match config.store {
                RemoteStore::Postgres if parts::keeps_escapes(&config.parts) => Flaws::NONE,
                RemoteStore::Postgres => Flaws::NUL,
                RemoteStore::Elasticsearch => Flaws::DUPLICATE_KEYS,
                _ => Flaws::NONE,
            },
            #[cfg(feature = "nats")]
            Self::Nats(_) => Flaws::NONE,
            #[cfg(feature = "redis")]
            Self::Redis(_) => Flaws::NONE,
            // It refuses documents with members of one name.
            #[cfg(feature = "elasticsearch")]
            Self::Elasticsearch(_) => Flaws::DUPLICATE_KEYS,
            #[cfg(feature = "swift")]
            Self::Swift(_) => Flaws::NONE,
            #[cfg(feature = "s3")]
            Self::S3(_) => Flaws::NONE,
            #[cfg(feature = "webhook")]
            Self::Webhook(_) => Flaws::NONE,
            // Neither jsonb nor text has it, and only payloads that are text byte for byte keep it as an escape.
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => {
                if config.keeps_escapes() {
                    Flaws::NONE
                } else {
                    Flaws::NUL
                }
            }
        }
    }

    /// Whether it stores events in objects, each of them whole or not at all.
    pub(crate) const fn has_objects(&self) -> bool {
        match self {
            Self::Directory(_) | Self::RemoteObjects(_) => true,
            #[cfg(feature = "swift")]
            Self::Swift(_) => true,
            #[cfg(feature = "s3")]
            Self::S3(_) => true,
            _ => false,
        }
    }

    /// What the sink is built from.
    pub(crate) fn to_driver(&self) -> ::sink::SinkConfig {
        match self {
            Self::Null => ::sink::SinkConfig::Null,
            Self::Sqlite(config) => ::sink::SinkConfig::Sqlite(config.clone()),
            Self::Directory(config) => ::sink::SinkConfig::Directory(config.clone()),
            #[cfg(feature = "elasticsearch")]
            Self::Elasticsearch(config) => ::sink::SinkConfig::Elasticsearch(config.clone()),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => ::sink::SinkConfig::Postgres(config.clone()),
            #[cfg(feature = "nats")]
            Self::Nats(config) => ::sink::SinkConfig::Nats(config.clone()),
            #[cfg(feature = "redis")]
            Self::Redis(config) => ::sink::SinkConfig::Redis(config.clone()),
            #[cfg(feature = "swift")]
            Self::Swift(config) => ::sink::SinkConfig::Swift(config.clone()),
            #[cfg(feature = "s3")]
            Self::S3(config) => ::sink::SinkConfig::S3(config.clone()),
            #[cfg(feature = "webhook")]
            Self::Webhook(config) => ::sink::SinkConfig::Webhook(config.clone()),
            Self::Remote(config) => ::sink::SinkConfig::Remote(config.clone()),
            Self::RemoteObjects(config) => ::sink::SinkConfig::RemoteObjects(config.clone()),
        }
    }
}

/// All `[sinks.…]` tables.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    pub(super) valid: BTreeMap<SinkName, SinkSettings>,
    /// Every name that the document has, also of sinks with mistakes: routes may point to them.
    declared: BTreeMap<String, SourceSpan>,
    /// Sinks of several databases. The databases beside the common one are sinks that no route names.
    #[cfg(feature = "postgres")]
    sharded: BTreeMap<SinkName, Shards>,
    /// Sinks for each server of an upstream, by the name that routes have.
    copies: BTreeMap<SinkName, Vec<SinkName>>,
}

impl Sinks {
    /// The sink that a route names, if there is one.
    pub(super) fn resolve(
        &self,
        reader: &mut SettingsReader<'_>,
        section: &Section<'_>,
        name: &str,
        span: &SourceSpan,
    ) -> Option<SinkName> {
        if self.declared.contains_key(name) {
            return SinkName::new(name);
        }
        let title = format!("`{}` names a sink that doesn't exist", section.key_path("routes"));
        let help = match nearest(name, self.declared.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add the sink as a table of its own: [sinks.NAME]".to_owned(),
        };
        reader.push(Diagnostic::new(title, span.clone(), "no such sink").help(help));
        None
    }

    /// Where a sink's name stands.
    pub(super) fn span(&self, name: &SinkName) -> Option<&SourceSpan> {
        #[cfg(feature = "postgres")]
        if let Some(shard) = self.sharded.values().flat_map(|shards| &shards.all).find(|shard| shard.sink == *name) {
            return Some(&shard.span);
        }
        let is_copied = |(_, copies): &(&SinkName, &Vec<SinkName>)| copies.contains(name);
        let original = self.copies.iter().find(is_copied).map_or(name, |(original, _)| original);
        self.declared.get(&*original.0)
    }

    /// What a route comes to: more than itself where its sink is several databases, or a sink for each server of an upstream.
    ///
    /// # Errors
    /// Why that can't be, in words.
    pub(super) fn spread(&self, route: Route) -> Result<Vec<Route>, String> {
        if let Some(copies) = self.copies.get(&route.to) {
            let to_copy = |to: &SinkName| Route { to: to.clone(), when: route.when.clone() };
            return Ok(copies.iter().map(to_copy).collect());
        }
        #[cfg(feature = "postgres")]
        if let Some(shards) = self.sharded.get(&route.to) {
            return shards.spread(&route);
        }
        Ok(vec![route])
    }

    /// Adds the databases beside the common one of a sink.
    #[cfg(feature = "postgres")]
    fn add_shards(
        &mut self,
        reader: &mut SettingsReader<'_>,
        name: &SinkName,
        settings: &SinkSettings,
        shards: Shards,
    ) {
        for shard in &shards.all {
            if let Some(other) = self.declared.get(&*shard.sink.0) {
                let title = format!("the shard is the sink `{}`, and there is one of this name", shard.sink);
                let mistake = Diagnostic::new(title, shard.span.clone(), "give it another name");
                reader.push(mistake.also(other.clone(), "this one"));
            }
            self.valid.insert(shard.sink.clone(), SinkSettings { store: shard.store.clone(), ..settings.clone() });
        }
        self.sharded.insert(name.clone(), shards);
    }
}

/// Reads all sinks; relative paths of stores lead from `data`, those of other files from `folder`.
pub(super) fn read(
    reader: &mut SettingsReader<'_>,
    tables: &[Section<'_>],
    folder: &Path,
    data: &Path,
    upstreams: &Upstreams,
) -> Sinks {
    let mut sinks = Sinks::default();
    for section in tables {
        sinks.declared.insert(section.name().to_owned(), section.span().clone());
        let name = SinkName::new(section.name());
        if name.is_none() {
            let title = format!("`{}` can't be the name of a sink", section.name());
            let label = format!("wanted 1 to {NAME_BYTES_MAX} of a-z, 0-9, `_` and `-`, a letter or digit first");
            reader.push(Diagnostic::new(title, section.span().clone(), label));
        }
        if let (Some(config), Some(name)) = (read_one(reader, section, folder, data, upstreams), name) {
            sinks.valid.insert(name, config);
        }
    }
    #[cfg(feature = "postgres")]
    read_shards(reader, tables, folder, &mut sinks);
    copies::read(reader, tables, &mut sinks);
    place::check(reader, &sinks);
    sinks
}

/// Behind all sinks, so that their names are known.
#[cfg(feature = "postgres")]
fn read_shards(reader: &mut SettingsReader<'_>, tables: &[Section<'_>], folder: &Path, sinks: &mut Sinks) {
    for section in tables {
        let Some(name) = SinkName::new(section.name()) else { continue };
        let Some(settings) = sinks.valid.get(&name).cloned() else { continue };
        let is_postgres = match &settings.store {
            SinkConfig::Postgres(_) => true,
            SinkConfig::Remote(config) => config.store == RemoteStore::Postgres,
            _ => false,
        };
        if let Some(shards) =
            is_postgres.then(|| super::shards::read(reader, section, folder, &settings.store)).flatten()
        {
            sinks.add_shards(reader, &name, &settings, shards);
        }
    }
}

fn read_one(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    folder: &Path,
    data: &Path,
    upstreams: &Upstreams,
) -> Option<SinkSettings> {
    let errors_before = reader.errors();
    let help = format!("add kind = \"sqlite\"; known kinds: {}", kind_names());
    let (kind, keys) = reader.required(section, "kind", &help, kind).unwrap_or(KINDS[0]);
    reader.check_keys(section, keys);
    let max_backlog = reader.text(section, "max_backlog", size::parse).map(|found| found.value);
    let max_dead_letters = reader.integer(section, "max_dead_letters", dead_letters).map(|found| found.value);
    let from = reader.text(section, "from", begin).map(|found| found.value).unwrap_or_default();
    let store = match kind {
        "null" => Some(SinkConfig::Null),
        "directory" => directory::read(reader, section, data).map(SinkConfig::Directory),
        #[cfg(feature = "elasticsearch")]
        "elasticsearch" => super::elasticsearch::read(reader, section, folder).map(SinkConfig::Elasticsearch),
        #[cfg(feature = "postgres")]
        "postgres" => super::postgres::read(reader, section, folder).map(SinkConfig::Postgres),
        #[cfg(feature = "nats")]
        "nats" => super::nats::read(reader, section, folder).map(SinkConfig::Nats),
        #[cfg(feature = "redis")]
        "redis" => super::redis::read(reader, section, folder).map(SinkConfig::Redis),
        #[cfg(feature = "swift")]
        "swift" => super::swift::read(reader, section, folder).map(SinkConfig::Swift),
        #[cfg(feature = "s3")]
        "s3" => super::s3::read(reader, section, folder).map(SinkConfig::S3),
        #[cfg(feature = "webhook")]
        "webhook" => super::webhook::read(reader, section, folder).map(SinkConfig::Webhook),
        "writer" => super::remote::read(reader, section, upstreams),
        _ => read_sqlite(reader, section, data).map(SinkConfig::Sqlite),
    };
    let serving = if keys.contains(&"serve") { serving::read(reader, section) } else { None };
    // Without this, defaults in the place of wrong values would be held against other sinks.
    let is_right = reader.errors() == errors_before || kind == "null";
    store.filter(|_| is_right).map(|store| SinkSettings { store, max_backlog, max_dead_letters, from, serving })
}

fn dead_letters(number: i64) -> Result<u64, InvalidValue> {
    let most = event::limits::DEAD_LETTERS_SET_MAX as u64;
    let letters = u64::try_from(number).ok().filter(|letters| (1..=most).contains(letters));
    letters.ok_or_else(|| InvalidValue::new("is out of range", format!("wanted 1 to {most}")))
}

fn read_sqlite(reader: &mut SettingsReader<'_>, section: &Section<'_>, data: &Path) -> Option<SqliteConfig> {
    let path = reader.text_or(section, "path", PATH, |text| file_path(text, data));
    Some(SqliteConfig { path: path?, table: sqlite_table(reader, section)? })
}

pub(super) fn sqlite_table(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<TableName> {
    reader.text_or(section, "table", TABLE, table)
}

fn begin(text: &str) -> Result<Begin, InvalidValue> {
    match text {
        "end" => Ok(Begin::End),
        "oldest" => Ok(Begin::Oldest),
        _ => Err(InvalidValue::new("is no place in the journal", "wanted \"end\" or \"oldest\"")),
    }
}

fn kind_names() -> String {
    KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
}

fn kind(text: &str) -> Result<(&'static str, &'static [&'static str]), InvalidValue> {
    let unknown = || {
        let wrong = InvalidValue::new("is not a kind of sink", "unknown");
        match nearest(text, KINDS.iter().map(|(kind, _)| *kind)) {
            Some(near) => wrong.help(format!("did you mean `{near}`?")),
            None => wrong.help(format!("known kinds: {}", kind_names())),
        }
    };
    KINDS.iter().find(|(kind, _)| *kind == text).copied().ok_or_else(unknown)
}

fn file_path(text: &str, data: &Path) -> Result<PathBuf, InvalidValue> {
    if text.ends_with('/') || Path::new(text).file_name().is_none() {
        return Err(InvalidValue::new("is not the path of a file", "wanted the name of a database file"));
    }
    if text.contains('\0') {
        return Err(InvalidValue::new("is not the path of a file", "holds a NUL character"));
    }
    let path = directory::plain(&data.join(text));
    directory::refuse_own(&path, data)?;
    Ok(path)
}

fn table(text: &str) -> Result<TableName, InvalidValue> {
    TableName::new(text).map_err(|error| InvalidValue::new("can't be the name of a table", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sink_names_follow_the_grammar() {
        for good in ["a", "0", "local", "a-b_c"] {
            assert!(SinkName::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "_a", "a.b", "A", "é", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert!(SinkName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn paths_lead_from_the_data_directory() {
        let path = |text| file_path(text, Path::new("data")).map(|path| path.display().to_string());
        assert_eq!(path("events.db").unwrap(), "data/events.db");
        assert_eq!(path("./x/./events.db").unwrap(), "data/x/events.db");
        assert_eq!(path("/var/events.db").unwrap(), "/var/events.db");
        for bad in ["", "/", ".", "..", "x/", "a\0b"] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
    }
}
