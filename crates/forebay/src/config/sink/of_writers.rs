//! Sinks of gateways, whose stores writers have, and sinks of writers.

use sink_remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore};

use super::SinkConfig;

impl SinkConfig {
    /// The writers and their sink, if it is one of a writer.
    pub(crate) const fn remote(&self) -> Option<&RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            _ => None,
        }
    }

    /// The same to be changed.
    pub(in crate::config) const fn remote_mut(&mut self) -> Option<&mut RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            _ => None,
        }
    }

    /// The name of its kind, if a writer can offer it to gateways.
    pub(crate) const fn writer_kind(&self) -> Option<RemoteStore> {
        match self {
            Self::Null => Some(RemoteStore::Null),
            Self::Sqlite(_) => Some(RemoteStore::Sqlite),
            #[cfg(feature = "elasticsearch")]
            Self::Elasticsearch(_) => Some(RemoteStore::Elasticsearch),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Some(RemoteStore::Postgres),
            #[cfg(feature = "nats")]
            Self::Nats(_) => Some(RemoteStore::Nats),
            #[cfg(feature = "redis")]
            Self::Redis(_) => Some(RemoteStore::Redis),
            #[cfg(feature = "webhook")]
            Self::Webhook(_) => Some(RemoteStore::Webhook),
            #[cfg(feature = "swift")]
            Self::Swift(_) => Some(RemoteStore::Swift),
            #[cfg(feature = "s3")]
            Self::S3(_) => Some(RemoteStore::S3),
            Self::Directory(_) => Some(RemoteStore::Directory),
            Self::Remote(_) | Self::RemoteObjects(_) => None,
        }
    }
}
