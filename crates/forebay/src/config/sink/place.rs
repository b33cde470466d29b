//! Where sinks write: no two to one place.

use std::collections::BTreeMap;
use std::path::Path;

use ::sink::SqliteConfig;
#[cfg(feature = "s3")]
use ::sink::object::over_http::s3::S3Config;
#[cfg(feature = "swift")]
use ::sink::object::over_http::swift::SwiftConfig;
use ::sink::remote::RemoteObjectsConfig;

use super::{SinkConfig, SinkName, Sinks};
use settings::{Diagnostic, SettingsReader};

/// Where a sink writes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    /// Two sinks on one table would refuse each other's events as duplicates.
    Table(&'a Path, String),
    /// In one index the same.
    #[cfg(feature = "elasticsearch")]
    ServerIndex(String, String),
    /// The same on a server.
    #[cfg(feature = "postgres")]
    ServerTable(String, String),
    /// In one stream an event that comes by the second is known by its id, and left out.
    #[cfg(feature = "nats")]
    ServerStream(String, String),
    /// Under the same keys.
    #[cfg(feature = "redis")]
    ServerKey(String, String),
    /// The same in one container where names begin alike.
    #[cfg(feature = "objects-over-http")]
    Container(String, String, String),
    /// Its receiver would take the second message under an event's id for a repetition of the first.
    #[cfg(feature = "webhook")]
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
            #[cfg(feature = "elasticsearch")]
            SinkConfig::Elasticsearch(config) => {
                Some(Self::ServerIndex(config.nodes.to_string(), config.index.to_string()))
            }
            #[cfg(feature = "postgres")]
            SinkConfig::Postgres(config) => {
                Some(Self::ServerTable(config.server.to_string(), config.table.to_string()))
            }
            #[cfg(feature = "nats")]
            SinkConfig::Nats(config) => Some(Self::ServerStream(config.servers.to_string(), config.stream.to_string())),
            #[cfg(feature = "redis")]
            SinkConfig::Redis(config) => Some(Self::ServerKey(config.place(), config.key.to_string())),
            #[cfg(feature = "swift")]
            SinkConfig::Swift(SwiftConfig { auth, container, rules, .. }) => {
                Some(Self::Container(auth.account(), container.to_string(), rules.prefix.to_string()))
            }
            #[cfg(feature = "s3")]
            SinkConfig::S3(S3Config { url, bucket, rules, .. }) => {
                Some(Self::Container(url.to_string(), bucket.to_string(), rules.prefix.to_string()))
            }
            #[cfg(feature = "webhook")]
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
            #[cfg(feature = "elasticsearch")]
            Self::ServerIndex(..) => ("index", "another `url` or `index`"),
            #[cfg(feature = "postgres")]
            Self::ServerTable(..) => ("table", "another `url` or `table`"),
            #[cfg(feature = "nats")]
            Self::ServerStream(..) => ("stream", "another `url` or `stream`"),
            #[cfg(feature = "redis")]
            Self::ServerKey(..) => ("key", "another `url` or `key`"),
            #[cfg(feature = "objects-over-http")]
            Self::Container(..) => ("place", "another `object`"),
            #[cfg(feature = "webhook")]
            Self::Receiver(_) => ("receiver", "another `url`"),
            Self::WriterSink(..) => ("sink of a writer", "another `upstream` or `sink`"),
            Self::Directory(_) => ("directory", "another `path`"),
        }
    }
}

/// Sees to it that no two sinks write to one place.
pub(super) fn check(reader: &mut SettingsReader<'_>, sinks: &Sinks) {
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
