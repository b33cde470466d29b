//! Sinks of gateways, whose stores writers have, and sinks of writers.

use sink_nats::NatsConfig;
use sink_redis::RedisConfig;
use sink_remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore};
use sink_sqlite::SqliteConfig;

use crate::sinks::parts::{self, Parts};
use crate::sinks::sink_config::SinkConfig;

impl SinkConfig {
    /// The writers and their sink, if it is one of a writer.
    pub const fn remote(&self) -> Option<&RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            _ => None,
        }
    }

    /// The same to be changed.
    pub const fn remote_mut(&mut self) -> Option<&mut RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            _ => None,
        }
    }

    /// The name of its kind, if a writer can offer it to gateways.
    pub const fn writer_kind(&self) -> Option<RemoteStore> {
        match self {
            Self::Null => Some(RemoteStore::Null),
            Self::Sqlite(_) => Some(RemoteStore::Sqlite),
            Self::Elasticsearch(_) => Some(RemoteStore::Elasticsearch),
            Self::Postgres(_) => Some(RemoteStore::Postgres),
            Self::Nats(_) => Some(RemoteStore::Nats),
            Self::Redis(_) => Some(RemoteStore::Redis),
            Self::Webhook(_) => Some(RemoteStore::Webhook),
            Self::Swift(_) => Some(RemoteStore::Swift),
            Self::S3(_) => Some(RemoteStore::S3),
            Self::Directory(_) => Some(RemoteStore::Directory),
            Self::Remote(_) | Self::RemoteObjects(_) => None,
        }
    }

    /// The sink's parts, as gateways compare them.
    pub fn parts(&self) -> Parts {
        let parts = match self {
            Self::Sqlite(SqliteConfig { table, .. }) => vec![("table", table.to_string())],
            Self::Elasticsearch(config) => parts::elasticsearch(config),
            Self::Postgres(config) => parts::postgres(config),
            Self::Nats(NatsConfig { stream, subject, .. }) => {
                vec![("stream", stream.to_string()), ("subject", subject.to_string())]
            }
            Self::Redis(RedisConfig { structure, key, .. }) => {
                vec![("mode", structure.to_string()), ("key", key.to_string())]
            }
            // It has no place for a mark, so that its address tells which one it is.
            Self::Webhook(config) => vec![("url", config.url.to_string()), ("envelope", format!("{:?}", config.shape))],
            Self::Directory(config) => parts::of_objects(&config.rules, RemoteStore::Directory),
            Self::Swift(config) => parts::of_objects(&config.rules, RemoteStore::Swift),
            Self::S3(config) => parts::of_objects(&config.rules, RemoteStore::S3),
            Self::Null | Self::Remote(_) | Self::RemoteObjects(_) => Vec::new(),
        };
        parts::named(parts)
    }
}
