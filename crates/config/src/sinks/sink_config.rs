//! A store's settings, whatever its kind.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ::sink::Sink;

use delivery::Begin;
use pipeline::storable::Flaws;
use sink_directory::DirectoryConfig;
use sink_elasticsearch::ElasticsearchConfig;
use sink_nats::NatsConfig;
use sink_postgres::{Layout, PostgresConfig};
use sink_redis::RedisConfig;
use sink_remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore};
use sink_s3::S3Config;
use sink_sqlite::SqliteConfig;
use sink_swift::SwiftConfig;
use sink_webhook::WebhookConfig;

use crate::sinks::object_serving::Serving;
use crate::sinks::parts;

/// A store, and how it is delivered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// The store.
    pub store: SinkConfig,
    /// Bytes of the journal that may wait for it, if the configuration says how many.
    pub max_backlog: Option<u64>,
    /// Dead letters of it that are held before its lanes pause, if the configuration says how many.
    pub max_dead_letters: Option<u64>,
    /// Where new routes to it begin.
    pub from: Begin,
    /// How its objects are given back, if they are.
    pub serving: Option<Serving>,
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
pub enum SinkConfig {
    /// Takes everything and keeps nothing.
    Null,
    /// A table of an SQLite database; the path is absolute or relative to the working directory.
    Sqlite(SqliteConfig),
    /// Files of a directory; its path likewise.
    Directory(DirectoryConfig),
    /// Documents of an Elasticsearch or OpenSearch store.
    Elasticsearch(ElasticsearchConfig),
    /// A table of a PostgreSQL server.
    Postgres(PostgresConfig),
    /// A stream of NATS JetStream.
    Nats(NatsConfig),
    /// Keys of a Redis server.
    Redis(RedisConfig),
    /// Objects in a container of Swift.
    Swift(SwiftConfig),
    /// Objects in a bucket of S3.
    S3(S3Config),
    /// Somebody's server.
    Webhook(WebhookConfig),
    /// A sink of a writer.
    Remote(RemoteConfig),
    /// A sink of a writer that stores objects.
    RemoteObjects(RemoteObjectsConfig),
}

impl SinkConfig {
    /// The file or the directory that it stores in, if it stores on this machine.
    pub fn local_path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(config) => Some(&config.path),
            Self::Directory(config) => Some(&config.path),
            _ => None,
        }
    }

    /// Whether events can be read back from it.
    pub const fn can_be_read(&self) -> bool {
        match self {
            Self::Null | Self::Directory(_) | Self::RemoteObjects(_) => false,
            Self::Remote(config) => config.reads,
            Self::Elasticsearch(config) => config.can_read(),
            Self::Nats(_) => false,
            Self::Redis(_) => false,
            Self::Swift(_) => false,
            Self::S3(_) => false,
            Self::Webhook(_) => false,
            Self::Sqlite(_) => true,
            Self::Postgres(config) => matches!(config.layout, Layout::Whole { .. }),
        }
    }

    /// What of JSON it can't store: types with a route to it refuse that before they are answered, unless they say otherwise.
    pub fn cannot_take(&self) -> Flaws {
        match self {
            Self::Null | Self::Sqlite(_) | Self::Directory(_) | Self::RemoteObjects(_) => Flaws::NONE,
            // Where the gateway's table doesn't say how the writer stores, what one of the ways can't take.
            Self::Remote(config) => match config.store {
                RemoteStore::Postgres if parts::keeps_escapes(&config.parts) => Flaws::NONE,
                RemoteStore::Postgres => Flaws::NUL,
                RemoteStore::Elasticsearch => Flaws::DUPLICATE_KEYS,
                _ => Flaws::NONE,
            },
            Self::Nats(_) => Flaws::NONE,
            Self::Redis(_) => Flaws::NONE,
            // It refuses documents with members of one name.
            Self::Elasticsearch(_) => Flaws::DUPLICATE_KEYS,
            Self::Swift(_) => Flaws::NONE,
            Self::S3(_) => Flaws::NONE,
            Self::Webhook(_) => Flaws::NONE,
            // Neither jsonb nor text has it, and only payloads that are text byte for byte keep it as an escape.
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
    pub const fn has_objects(&self) -> bool {
        match self {
            Self::Directory(_) | Self::RemoteObjects(_) => true,
            Self::Swift(_) => true,
            Self::S3(_) => true,
            _ => false,
        }
    }

    /// The sink, which isn't connected yet.
    #[must_use]
    pub fn build(&self) -> Sink {
        match self {
            Self::Null => Sink::new(::sink::Null),
            Self::Sqlite(config) => Sink::new(sink_sqlite::Sqlite::new(config.clone())),
            Self::Directory(config) => sink_directory::sink(config.clone(), Arc::new(sink_directory::OsFiles)),
            Self::Elasticsearch(config) => Sink::new(sink_elasticsearch::Elasticsearch::new(config.clone())),
            Self::Postgres(config) => Sink::new(sink_postgres::Postgres::new(config.clone())),
            Self::Nats(config) => Sink::new(sink_nats::Nats::new(config.clone())),
            Self::Redis(config) => Sink::new(sink_redis::Redis::new(config.clone())),
            Self::Swift(config) => sink_swift::sink(config.clone()),
            Self::S3(config) => sink_s3::sink(config.clone()),
            Self::Webhook(config) => Sink::new(sink_webhook::Webhook::new(config.clone())),
            Self::Remote(config) => Sink::new(sink_remote::Remote::new(config.clone())),
            Self::RemoteObjects(config) => {
                Sink::new(::objects::ObjectSink::new(sink_remote::RemoteObjects::new(config.clone())))
            }
        }
    }
}
