//! What sinks of kind `writer` have: which writers, which of their sinks, and which kind of store that is.

use ::sink::ObjectRules;
use ::sink::remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore, UnknownStore};

use super::reader::{Reader, Wrong};
use super::report::Mistake;
use super::section::Section;
use super::sink::{SinkConfig, SinkName};
use super::upstream::Upstreams;
use super::{directory, objects_over_http};

/// The settings.
pub(super) const KEYS: &[&str] = &[
    "kind",
    "from",
    "max_backlog",
    "upstream",
    "sink",
    "store",
    "read",
    "codec",
    "format",
    "object",
    "envelope",
    "object_from",
    "object_type_from",
    "max_bytes",
    "max_records",
    "max_age",
    "serve",
    "cache_control",
    "revalidate",
    "stale",
];
/// Those of directories only.
const OF_DIRECTORIES: &[&str] = &["codec"];
/// Those of stores of objects over HTTP only.
const OVER_HTTP: &[&str] = &["format", "object", "object_from", "object_type_from"];
/// Those of all stores of objects.
const OF_OBJECTS: &[&str] =
    &["envelope", "max_bytes", "max_records", "max_age", "serve", "cache_control", "revalidate", "stale"];

/// Reads them.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, upstreams: &Upstreams) -> Option<SinkConfig> {
    let help = "name a table [upstreams.NAME], as in upstream = \"back\"";
    let upstream = reader.required(section, "upstream", help, |name| upstreams.find(name).map(|found| found.cloned()));
    let sink = reader.text_or(section, "sink", section.name(), sink);
    let store = reader.required(section, "store", "say what the writer stores in, as in store = \"postgres\"", store);
    let reads = reader.boolean(section, "read").map(|found| found.value);
    let rules = store.and_then(|store| rules(reader, section, store));
    let (upstream, sink, store) = (upstream??, sink?, store?);
    if upstream.servers.len() > 1 && matches!(store, RemoteStore::Sqlite | RemoteStore::Directory) {
        let title = format!("`{}` has files of its own for each writer", section.key_path("store"));
        let label = format!("and the upstream has {} servers", upstream.servers.len());
        let help = "give the upstream one server, or let the writers share a store such as postgres";
        reader.push(Mistake::new(title, section.spot().clone(), label).help(help.to_owned()));
    }
    let reads = reads.unwrap_or(store == RemoteStore::Sqlite);
    let remote = RemoteConfig { servers: upstream.servers, sink, store, reads, token: upstream.token, ca: upstream.ca };
    Some(match rules {
        None => SinkConfig::Remote(remote),
        Some(rules) => SinkConfig::RemoteObjects(RemoteObjectsConfig { remote, rules }),
    })
}

/// What the gateway's objects are like, if the store has any: the gateway makes them.
fn rules(reader: &mut Reader<'_>, section: &Section<'_>, store: RemoteStore) -> Option<ObjectRules> {
    let refused: &[&[&str]] = match store {
        RemoteStore::Directory => &[OVER_HTTP, &["read"]],
        RemoteStore::Swift | RemoteStore::S3 => &[OF_DIRECTORIES, &["read"]],
        _ => &[OF_DIRECTORIES, OVER_HTTP, OF_OBJECTS],
    };
    for key in refused.concat() {
        let Some((spot, _)) = section.get(key) else { continue };
        let title = format!("`{}` has no meaning here", section.key_path(key));
        reader.push(Mistake::new(title, spot, format!("not with store = \"{}\"", store.as_str())));
    }
    match store {
        RemoteStore::Directory => Some(directory::rules(reader, section)),
        RemoteStore::Swift | RemoteStore::S3 => Some(objects_over_http::rules(reader, section)),
        _ => None,
    }
}

fn sink(text: &str) -> Result<String, Wrong> {
    let wrong = || Wrong::new("can't be the name of a sink", "wanted the sink's name in the writer's configuration");
    SinkName::new(text).map(|name| name.to_string()).ok_or_else(wrong)
}

fn store(text: &str) -> Result<RemoteStore, Wrong> {
    text.parse().map_err(|error: UnknownStore| Wrong::new("is no kind of store that a writer has", error.to_string()))
}
