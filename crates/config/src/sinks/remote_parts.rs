//! The settings of a writer's store in a gateway's table. The gateway needs those that decide whether an event can be stored before it
//! answers, and before any writer answers. The writer's sink must have the same values.

use std::collections::BTreeSet;

use settings::{Diagnostic, Section, SettingsReader};
use sink_remote::RemoteStore;

use crate::sinks::parts::{self, Parts};
use crate::sinks::{elasticsearch, nats, postgres, redis, sqlite};

/// A part of a store's layout, and the settings that define it.
type Part = (&'static str, &'static [&'static str]);

/// The settings of each kind of store, by part. The part has no name if another module reads the settings.
const SETTINGS: &[(RemoteStore, &[Part])] = &[
    (RemoteStore::Sqlite, &[("table", &["table"])]),
    (
        RemoteStore::Postgres,
        &[
            ("table", &["table"]),
            ("partition", &["partition"]),
            ("conflict", &["conflict"]),
            ("columns", &["columns", "payload", "payload_type"]),
            ("payload", &["columns", "payload", "payload_type"]),
            ("shards", &["shard_by", "shards"]),
        ],
    ),
    (RemoteStore::Redis, &[("mode", &["mode", "field", "by", "max_entries"]), ("key", &["key"])]),
    (RemoteStore::Nats, &[("stream", &["stream"]), ("subject", &["subject"])]),
    (
        RemoteStore::Elasticsearch,
        &[
            ("index", &["index"]),
            ("data_stream", &["data_stream"]),
            ("envelope", &["envelope"]),
            ("conflict", &["conflict"]),
        ],
    ),
    (RemoteStore::Directory, &[("", OF_OBJECTS), ("", &["codec"])]),
    (RemoteStore::Swift, &[("", OF_OBJECTS), ("", OVER_HTTP)]),
    (RemoteStore::S3, &[("", OF_OBJECTS), ("", OVER_HTTP)]),
];

/// The settings of all stores of objects. The module of objects reads them, because the gateway makes the objects.
const OF_OBJECTS: &[&str] =
    &["envelope", "max_bytes", "max_records", "max_age", "serve", "cache_control", "revalidate", "stale"];
const OVER_HTTP: &[&str] = &["format", "object", "object_from", "object_type_from"];

/// Reads the settings that the table has. A setting of another kind of store is a mistake.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, store: RemoteStore) -> Parts {
    let settings = SETTINGS.iter().find(|(kind, _)| *kind == store).map_or(&[][..], |(_, settings)| *settings);
    let known = |key: &str| settings.iter().any(|(_, keys)| keys.contains(&key));
    let of_any = SETTINGS.iter().flat_map(|(_, settings)| settings.iter()).flat_map(|(_, keys)| keys.iter());
    for key in of_any.filter(|key| !known(key)).collect::<BTreeSet<_>>() {
        let Some((span, _)) = section.get(key) else { continue };
        let title = format!("`{}` has no meaning with store = \"{}\"", section.key_path(key), store.as_str());
        reader.push(Diagnostic::new(title, span, "the store has no such setting"));
    }
    let mut all = parts::named(read_all(reader, section, store));
    // A setting that the table lacks is unknown: the writer's defaults may differ.
    let says = |keys: &[&str]| keys.iter().any(|key| reader.is_set(section, key));
    all.retain(|part, _| settings.iter().any(|(name, keys)| name == part && says(keys)));
    all
}

fn read_all(reader: &mut SettingsReader<'_>, section: &Section<'_>, store: RemoteStore) -> Vec<(&'static str, String)> {
    match store {
        RemoteStore::Sqlite => {
            sqlite::read_table(reader, section).map(|table| ("table", table.to_string())).into_iter().collect()
        }
        RemoteStore::Postgres => postgres::parts(reader, section),
        RemoteStore::Redis => redis::parts(reader, section),
        RemoteStore::Nats => nats::parts(reader, section),
        RemoteStore::Elasticsearch => elasticsearch::parts(reader, section),
        _ => Vec::new(),
    }
}
