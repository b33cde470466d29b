//! What sinks of kind `writer` have: which writers, which of their sinks, and which kind of store that is.

use ::sink::remote::{RemoteConfig, RemoteStore, UnknownStore};

use super::reader::{Reader, Wrong};
use super::remote_parts;
use super::report::Mistake;
use super::section::Section;
use super::sink::SinkName;
use super::upstream::Upstreams;

/// The settings.
pub(super) const KEYS: &[&str] = &[
    "kind",
    "from",
    "max_backlog",
    "upstream",
    "sink",
    "store",
    "read",
    "table",
    "partition",
    "columns",
    "payload",
    "payload_type",
    "conflict",
    "mode",
    "key",
    "field",
    "by",
    "max_entries",
    "stream",
    "subject",
    "index",
    "data_stream",
    "envelope",
    #[cfg(feature = "postgres")]
    super::shards::BY,
    #[cfg(feature = "postgres")]
    super::shards::TABLE,
];

/// Reads them.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>, upstreams: &Upstreams) -> Option<RemoteConfig> {
    let help = "name a table [upstreams.NAME], as in upstream = \"back\"";
    let upstream = reader.required(section, "upstream", help, |name| upstreams.find(name).map(|found| found.cloned()));
    let sink = reader.text_or(section, "sink", section.name(), sink);
    let store = reader.required(section, "store", "say what the writer stores in, as in store = \"postgres\"", store);
    let reads = reader.boolean(section, "read").map(|found| found.value);
    let parts = store.map(|store| remote_parts::read(reader, section, store));
    let (upstream, sink, store, parts) = (upstream??, sink?, store?, parts?);
    if upstream.servers.len() > 1 && store == RemoteStore::Sqlite {
        let title = format!("`{}` has one file for each writer", section.key_path("store"));
        let label = format!("and the upstream has {} servers", upstream.servers.len());
        let help = "give the upstream one server, or let the writers share a store such as postgres";
        reader.push(Mistake::new(title, section.spot().clone(), label).help(help.to_owned()));
    }
    let reads = reads.unwrap_or(store == RemoteStore::Sqlite);
    Some(RemoteConfig { servers: upstream.servers, sink, store, parts, reads, token: upstream.token, ca: upstream.ca })
}

fn sink(text: &str) -> Result<String, Wrong> {
    let wrong = || Wrong::new("can't be the name of a sink", "wanted the sink's name in the writer's configuration");
    SinkName::new(text).map(|name| name.to_string()).ok_or_else(wrong)
}

fn store(text: &str) -> Result<RemoteStore, Wrong> {
    text.parse().map_err(|error: UnknownStore| Wrong::new("is no kind of store that a writer has", error.to_string()))
}
