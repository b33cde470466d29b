//! `[sinks.X]`: the stores that events go to.

mod copies;
mod declared;
mod destination;
pub(crate) mod directory;
mod display;
mod elasticsearch;
pub(crate) mod kinds;
mod name;
mod nats;
pub(crate) mod object_serving;
mod objects;
mod objects_over_http;
mod of_writers;
mod parts;
mod postgres;
mod redis;
mod remote;
mod remote_parts;
pub(crate) mod route;
mod s3;
mod shards;
mod sink_config;
mod sqlite;
mod swift;
mod webhook;

use std::path::Path;

use delivery::Begin;
use settings::{Diagnostic, InvalidValue, Section, SettingsReader, size};
use sink_remote::RemoteStore;

pub(crate) use crate::sinks::declared::Sinks;
use crate::sinks::name::NAME_BYTES_MAX;
pub use crate::sinks::name::SinkName;
pub use crate::sinks::sink_config::{SinkConfig, SinkSettings};
use crate::upstreams::Upstreams;

/// Reads all sinks; relative paths of stores lead from `data`, those of other files from `folder`.
pub(crate) fn read(
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
    read_shards(reader, tables, folder, &mut sinks);
    copies::read(reader, tables, &mut sinks);
    destination::check(reader, &sinks);
    sinks
}

/// Behind all sinks, so that their names are known.
fn read_shards(reader: &mut SettingsReader<'_>, tables: &[Section<'_>], folder: &Path, sinks: &mut Sinks) {
    for section in tables {
        let Some(name) = SinkName::new(section.name()) else { continue };
        let Some(settings) = sinks.valid.get(&name).cloned() else { continue };
        let is_postgres = match &settings.store {
            SinkConfig::Postgres(_) => true,
            SinkConfig::Remote(config) => config.store == RemoteStore::Postgres,
            _ => false,
        };
        if let Some(shards) = is_postgres.then(|| shards::read(reader, section, folder, &settings.store)).flatten() {
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
    let help = format!("add kind = \"sqlite\"; known kinds: {}", kinds::names());
    let (kind, keys) = reader.required(section, "kind", &help, kinds::parse).unwrap_or(kinds::KINDS[0]);
    reader.check_keys(section, keys);
    let max_backlog = reader.text(section, "max_backlog", size::parse).map(|found| found.value);
    let max_dead_letters = reader.integer(section, "max_dead_letters", dead_letters).map(|found| found.value);
    let from = reader.text(section, "from", begin).map(|found| found.value).unwrap_or_default();
    let store = match kind {
        "null" => Some(SinkConfig::Null),
        "directory" => directory::read(reader, section, data).map(SinkConfig::Directory),
        "elasticsearch" => elasticsearch::read(reader, section, folder).map(SinkConfig::Elasticsearch),
        "postgres" => postgres::read(reader, section, folder).map(SinkConfig::Postgres),
        "nats" => nats::read(reader, section, folder).map(SinkConfig::Nats),
        "redis" => redis::read(reader, section, folder).map(SinkConfig::Redis),
        "swift" => swift::read(reader, section, folder).map(SinkConfig::Swift),
        "s3" => s3::read(reader, section, folder).map(SinkConfig::S3),
        "webhook" => webhook::read(reader, section, folder).map(SinkConfig::Webhook),
        "writer" => remote::read(reader, section, upstreams),
        _ => sqlite::read(reader, section, data).map(SinkConfig::Sqlite),
    };
    let serving = if keys.contains(&"serve") { object_serving::read(reader, section) } else { None };
    // Without this, defaults in the place of wrong values would be held against other sinks.
    let is_right = reader.errors() == errors_before || kind == "null";
    store.filter(|_| is_right).map(|store| SinkSettings { store, max_backlog, max_dead_letters, from, serving })
}

fn dead_letters(number: i64) -> Result<u64, InvalidValue> {
    let most = event::limits::DEAD_LETTERS_SET_MAX as u64;
    let letters = u64::try_from(number).ok().filter(|letters| (1..=most).contains(letters));
    letters.ok_or_else(|| InvalidValue::new("is out of range", format!("wanted 1 to {most}")))
}

fn begin(text: &str) -> Result<Begin, InvalidValue> {
    match text {
        "end" => Ok(Begin::End),
        "oldest" => Ok(Begin::Oldest),
        _ => Err(InvalidValue::new("is no place in the journal", "wanted \"end\" or \"oldest\"")),
    }
}
