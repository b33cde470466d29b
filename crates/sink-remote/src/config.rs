//! The configuration of a gateway's sink of kind `writer`: which writers, which of their sinks, and which kind of store.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use super::upstream::{Upstream, Writers};
use objects::ObjectRules;
use sink::Capabilities;

/// The checked configuration of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The writers.
    pub upstream: Upstream,
    /// The name of the only writer that the sink uses. `None`: all writers of the upstream.
    pub server: Option<String>,
    /// The sink's name in the writers' configuration.
    pub sink: String,
    /// Its kind of store.
    pub store: RemoteStore,
    /// The sink's settings that the gateway's table has, named as in [`protocol::SinkInfo::parts`](super::protocol::SinkInfo).
    pub parts: BTreeMap<String, String>,
    /// Whether events are read back through the writers.
    pub reads: bool,
}

impl RemoteConfig {
    /// The URLs of the writers that the sink may use, or the etcd in which they register.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let is_wanted = |name: &String| self.server.as_ref().is_none_or(|server| server == name);
        match &self.upstream.config().writers {
            Writers::Listed(list) => list.iter().map(ToString::to_string).collect(),
            Writers::Named(list) => {
                list.iter().filter(|(name, _)| is_wanted(name)).map(|(_, url)| url.to_string()).collect()
            }
            Writers::Dns(url) => vec![url.to_string()],
            Writers::Etcd { etcd, .. } => vec![etcd.to_string()],
        }
    }
}

/// The checked configuration of a sink whose store keeps whole objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteObjectsConfig {
    /// The writers and their sink. Its kind of store has objects.
    pub remote: RemoteConfig,
    /// The rules of the gateway's objects.
    pub rules: ObjectRules,
}

/// The kinds of store that a writer can have for a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteStore {
    /// A table of the writer's own SQLite file.
    Sqlite,
    /// A table of a PostgreSQL server.
    Postgres,
    /// Keys of a Redis server.
    Redis,
    /// A stream of NATS JetStream.
    Nats,
    /// Documents of an Elasticsearch or OpenSearch store.
    Elasticsearch,
    /// The receiver of a web hook.
    Webhook,
    /// Files of a directory.
    Directory,
    /// Objects in a container of Swift.
    Swift,
    /// Objects in a bucket of S3.
    S3,
    /// Accepts everything and stores nothing.
    Null,
    /// Memory, in tests.
    Memory,
}

/// A string that names no such kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted sqlite, postgres, redis, nats, elasticsearch, webhook, directory, swift, s3 or null")]
pub struct UnknownStore;

impl RemoteStore {
    /// The kinds that configurations may name.
    pub const NAMED: [Self; 10] = [
        Self::Sqlite,
        Self::Postgres,
        Self::Redis,
        Self::Nats,
        Self::Elasticsearch,
        Self::Webhook,
        Self::Directory,
        Self::Swift,
        Self::S3,
        Self::Null,
    ];

    /// The kind's name in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Nats => "nats",
            Self::Elasticsearch => "elasticsearch",
            Self::Webhook => "webhook",
            Self::Directory => "directory",
            Self::Swift => "swift",
            Self::S3 => "s3",
            Self::Null => "null",
            Self::Memory => "memory",
        }
    }

    /// Whether each writer has a store of its own, in its data directory.
    #[must_use]
    pub const fn is_embedded(self) -> bool {
        matches!(self, Self::Sqlite | Self::Directory)
    }

    /// Whether it stores whole objects: then its configuration is a [`RemoteObjectsConfig`].
    #[must_use]
    pub const fn has_objects(self) -> bool {
        matches!(self, Self::Directory | Self::Swift | Self::S3)
    }

    /// The capabilities that delivery needs before any writer answers.
    #[must_use]
    pub const fn capabilities(self) -> Capabilities {
        /// The same value as in the store's own sink, which a gateway may be built without.
        const MINUTE: Duration = Duration::from_mins(1);
        let (settle, fenced) = match self {
            // SQLite too: the store shares its fate with the writer's directory, not with the journal.
            Self::Sqlite | Self::Postgres | Self::Redis | Self::Nats => (MINUTE, true),
            Self::Memory => (Duration::ZERO, true),
            Self::Elasticsearch | Self::Webhook | Self::Directory | Self::Swift | Self::S3 | Self::Null => {
                (Duration::ZERO, false)
            }
        };
        Capabilities { settle, fenced, on_this_disk: false, remote: true }
    }
}

impl FromStr for RemoteStore {
    type Err = UnknownStore;

    fn from_str(text: &str) -> Result<Self, UnknownStore> {
        Self::NAMED.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownStore)
    }
}
