//! Where sinks write: no two to one place.

use std::collections::BTreeMap;
use std::path::Path;

use settings::{Diagnostic, SettingsReader};
use sink_remote::RemoteObjectsConfig;
use sink_s3::S3Config;
use sink_sqlite::SqliteConfig;
use sink_swift::SwiftConfig;

use crate::sinks::declared::Sinks;
use crate::sinks::name::SinkName;
use crate::sinks::sink_config::SinkConfig;

/// Where a sink writes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    /// Two sinks on one table would refuse each other's events as duplicates.
    Table(&'a Path, String),
    /// In one index the same.
    ServerIndex(String, String),
    /// The same on a server.
    ServerTable(String, String),
    /// In one stream an event that comes by the second is known by its id, and left out.
    ServerStream(String, String),
    /// Under the same keys.
    ServerKey(String, String),
    /// The same in one container where names begin alike.
    Container(String, String, String),
    /// Its receiver would take the second message under an event's id for a repetition of the first.
    Receiver(&'a str),
    /// Two lanes of one gateway would take turns with one cursor's place.
    WriterSink(String, &'a str),
    /// In one directory nobody could tell whose files are missing.
    Directory(&'a Path),
}

impl<'a> Place<'a> {
    fn of(store: &'a SinkConfig) -> Option<Self> {
        match store {
            SinkConfig::Null => None,
            // SQLite takes `Events` and `events` for one table.
            SinkConfig::Sqlite(SqliteConfig { path, table }) => {
                Some(Self::Table(path, table.as_str().to_ascii_lowercase()))
            }
            SinkConfig::Directory(config) => Some(Self::Directory(&config.path)),
            SinkConfig::Elasticsearch(config) => {
                Some(Self::ServerIndex(config.nodes.to_string(), config.index.to_string()))
            }
            SinkConfig::Postgres(config) => {
                Some(Self::ServerTable(config.server.to_string(), config.table.to_string()))
            }
            SinkConfig::Nats(config) => Some(Self::ServerStream(config.servers.to_string(), config.stream.to_string())),
            SinkConfig::Redis(config) => Some(Self::ServerKey(config.place(), config.key.to_string())),
            SinkConfig::Swift(SwiftConfig { auth, container, rules, .. }) => {
                Some(Self::Container(auth.account(), container.to_string(), rules.prefix.to_string()))
            }
            SinkConfig::S3(S3Config { url, bucket, rules, .. }) => {
                Some(Self::Container(url.to_string(), bucket.to_string(), rules.prefix.to_string()))
            }
            SinkConfig::Webhook(config) => Some(Self::Receiver(config.url.text())),
            SinkConfig::Remote(config) | SinkConfig::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => {
                let mut servers = config.urls();
                servers.sort();
                Some(Self::WriterSink(servers.join(","), &config.sink))
            }
        }
    }

    /// What it is, and how to tell two of them apart.
    const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Table(..) => ("table", "another `path` or `table`"),
            Self::ServerIndex(..) => ("index", "another `url` or `index`"),
            Self::ServerTable(..) => ("table", "another `url` or `table`"),
            Self::ServerStream(..) => ("stream", "another `url` or `stream`"),
            Self::ServerKey(..) => ("key", "another `url` or `key`"),
            Self::Container(..) => ("place", "another `object`"),
            Self::Receiver(_) => ("receiver", "another `url`"),
            Self::WriterSink(..) => ("sink of a writer", "another `upstream` or `sink`"),
            Self::Directory(_) => ("directory", "another `path`"),
        }
    }
}

/// Sees to it that no two sinks write to one place.
pub(crate) fn check(reader: &mut SettingsReader<'_>, sinks: &Sinks) {
    let mut first: BTreeMap<Place<'_>, &SinkName> = BTreeMap::new();
    let start = |name: &SinkName| sinks.span(name).map_or(0, |span| span.range.start);
    let mut in_order: Vec<_> = sinks.valid.iter().collect();
    in_order.sort_by_key(|(name, _)| start(name));
    for (name, settings) in in_order {
        let Some(place) = Place::of(&settings.store) else { continue };
        let (what, another) = place.words();
        let Some(other) = first.insert(place, name) else { continue };
        if let (Some(at), Some(also)) = (sinks.span(name), sinks.span(other)) {
            let title = format!("the sinks `{other}` and `{name}` write to the same {what}");
            let mistake = Diagnostic::new(title, at.clone(), format!("writes to the {what}"));
            let mistake = mistake.also(also.clone(), "of this one");
            reader.push(mistake.help(format!("give one of them {another}")));
        }
    }
}
