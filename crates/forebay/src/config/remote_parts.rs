//! What a gateway's table says of how a writer stores: settings of the store's own kind. What decides whether an event can be stored is
//! needed before the answer, and before any writer is asked. The writer's sink must have the same.

use std::collections::BTreeSet;

use ::sink::remote::RemoteStore;

use super::reader::Reader;
use super::report::Mistake;
use super::section::Section;
use super::sink;
use super::sink::parts::{self, Parts};

/// A part of how a store keeps events, and the settings that say it.
type Part = (&'static str, &'static [&'static str]);

/// The settings of each kind of store, by the parts that they are read into; without a name where others read them.
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

/// Settings of all stores of objects. These are read as a whole: the gateway makes the objects.
const OF_OBJECTS: &[&str] =
    &["envelope", "max_bytes", "max_records", "max_age", "serve", "cache_control", "revalidate", "stale"];
const OVER_HTTP: &[&str] = &["format", "object", "object_from", "object_type_from"];

/// Reads those that the table has. One that the kind of store doesn't have is a mistake.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, store: RemoteStore) -> Parts {
    let settings = SETTINGS.iter().find(|(kind, _)| *kind == store).map_or(&[][..], |(_, settings)| *settings);
    let known = |key: &str| settings.iter().any(|(_, keys)| keys.contains(&key));
    let of_any = SETTINGS.iter().flat_map(|(_, settings)| settings.iter()).flat_map(|(_, keys)| keys.iter());
    for key in of_any.filter(|key| !known(key)).collect::<BTreeSet<_>>() {
        let Some((spot, _)) = section.get(key) else { continue };
        let title = format!("`{}` has no meaning with store = \"{}\"", section.key_path(key), store.as_str());
        reader.push(Mistake::new(title, spot, "the store has no such setting"));
    }
    let mut all = parts::named(read_all(reader, section, store));
    // What the table doesn't say isn't known here: the writer's own defaults may be others.
    let says = |keys: &[&str]| keys.iter().any(|key| reader.is_set(section, key));
    all.retain(|part, _| settings.iter().any(|(name, keys)| name == part && says(keys)));
    all
}

fn read_all(reader: &mut Reader<'_>, section: &Section<'_>, store: RemoteStore) -> Vec<(&'static str, String)> {
    match store {
        RemoteStore::Sqlite => {
            sink::sqlite_table(reader, section).map(|table| ("table", table.to_string())).into_iter().collect()
        }
        #[cfg(feature = "postgres")]
        RemoteStore::Postgres => super::postgres::parts(reader, section),
        #[cfg(feature = "redis")]
        RemoteStore::Redis => super::redis::parts(reader, section),
        #[cfg(feature = "nats")]
        RemoteStore::Nats => super::nats::parts(reader, section),
        #[cfg(feature = "elasticsearch")]
        RemoteStore::Elasticsearch => super::elasticsearch::parts(reader, section),
        _ => Vec::new(),
    }
}
