//! The sinks side by side: one enum, and the one `match` that builds them from configuration.

use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::read::{Page, Query, ReadError};

use crate::contract::make_visible;
use crate::object::directory::{Directory, Files, OsFiles};
use crate::object::over_http::OverHttp;
use crate::{
    Batch, Claim, Cursor, DirectoryConfig, Held, MemoryHandle, ObjectStore, Reason, Report, SinkError, Sqlite,
    SqliteConfig, Takeover, Traits,
};

/// Which sink to build, as checked configuration.
#[derive(Clone, Debug)]
pub enum SinkConfig {
    /// Delivers and discards.
    Null,
    /// Keeps everything in the process's memory: for tests.
    Memory(MemoryHandle),
    /// A table of a SQLite file.
    Sqlite(SqliteConfig),
    /// Files of a directory.
    Directory(DirectoryConfig),
    /// Documents of an Elasticsearch or OpenSearch store.
    Elasticsearch(crate::elasticsearch::ElasticsearchConfig),
    /// A table of a PostgreSQL server.
    Postgres(crate::postgres::PostgresConfig),
    /// A stream of NATS JetStream.
    Nats(crate::nats::NatsConfig),
    /// Keys of a Redis server.
    Redis(crate::redis::RedisConfig),
    /// Objects in a container of Swift.
    Swift(crate::object::over_http::swift::SwiftConfig),
    /// Objects in a bucket of S3.
    S3(crate::object::over_http::s3::S3Config),
    /// Somebody's server.
    Webhook(crate::webhook::WebhookConfig),
    /// A sink of a writer.
    Remote(crate::remote::RemoteConfig),
    /// A sink of a writer that stores objects.
    RemoteObjects(crate::remote::RemoteObjectsConfig),
}

/// A driver of one store.
///
/// Cheap to clone: the clones share the store's connection, so each lane has one of its own and all may call
/// at once. Whoever calls waits without blocking its thread. A future that is dropped before it ends leaves
/// its call to take effect or not; the same batch sent again is harmless.
#[derive(Clone, Debug)]
pub enum Sink {
    /// Delivers and discards.
    Null,
    /// Keeps everything in the process's memory: for tests.
    Memory(MemoryHandle),
    /// A table of a SQLite file. Its lanes take turns on the one thread that owns the file.
    Sqlite(Sqlite),
    /// Whole objects, such as files of a directory.
    Objects(ObjectStore),
    /// Documents of an Elasticsearch or OpenSearch store. Its lanes share what may be in flight.
    Elasticsearch(crate::elasticsearch::Elasticsearch),
    /// A table of a PostgreSQL server. Its lanes share connections.
    Postgres(crate::postgres::Postgres),
    /// A stream of NATS JetStream. Its lanes share connections.
    Nats(crate::nats::Nats),
    /// Keys of a Redis server. Its lanes share connections.
    Redis(crate::redis::Redis),
    /// Somebody's server. Its lanes share what may be in flight.
    Webhook(crate::webhook::Webhook),
    /// A sink of a writer. Its lanes use writers of their own choice.
    Remote(crate::remote::Remote),
}

impl Sink {
    /// A sink that isn't connected yet. Nothing is opened or made before the first call.
    #[must_use]
    pub fn new(config: SinkConfig) -> Self {
        match config {
            SinkConfig::Null => Self::Null,
            SinkConfig::Memory(handle) => Self::Memory(handle),
            SinkConfig::Sqlite(config) => Self::Sqlite(Sqlite::new(config)),
            SinkConfig::Directory(config) => Self::directory(config, Arc::new(OsFiles)),
            SinkConfig::Elasticsearch(config) => Self::Elasticsearch(crate::elasticsearch::Elasticsearch::new(config)),
            SinkConfig::Postgres(config) => Self::Postgres(crate::postgres::Postgres::new(config)),
            SinkConfig::Nats(config) => Self::Nats(crate::nats::Nats::new(config)),
            SinkConfig::Redis(config) => Self::Redis(crate::redis::Redis::new(config)),
            SinkConfig::Swift(config) => Self::Objects(ObjectStore::OverHttp(OverHttp::swift(config))),
            SinkConfig::S3(config) => Self::Objects(ObjectStore::OverHttp(OverHttp::s3(config))),
            SinkConfig::Webhook(config) => Self::Webhook(crate::webhook::Webhook::new(config)),
            SinkConfig::Remote(config) => Self::Remote(crate::remote::Remote::new(config)),
            SinkConfig::RemoteObjects(config) => Self::Objects(ObjectStore::OverHttp(OverHttp::writer(config))),
        }
    }

    /// A directory whose files are made through `files`.
    #[must_use]
    pub fn directory(config: DirectoryConfig, files: Arc<dyn Files>) -> Self {
        Self::Objects(ObjectStore::Directory(Directory::new(config, files)))
    }

    /// The store of objects, if it is one: delivery writes to it by manifests.
    #[must_use]
    pub const fn objects(&self) -> Option<&ObjectStore> {
        match self {
            Self::Objects(store) => Some(store),
            _ => None,
        }
    }

    /// Connects to the store, makes what is missing in it and checks what is there. Connecting again is
    /// harmless, and the other calls connect by themselves where a connection was lost or closed.
    ///
    /// # Errors
    /// [`SinkError`] says whether it may pass or a person must act.
    pub async fn connect(&self) -> Result<(), SinkError> {
        let done = match self {
            Self::Null => Ok(()),
            Self::Memory(memory) => memory.connect(),
            Self::Sqlite(sqlite) => sqlite.connect().await,
            Self::Objects(ObjectStore::Directory(directory)) => directory.connect().await,
            Self::Elasticsearch(elasticsearch) => elasticsearch.connect().await,
            Self::Objects(ObjectStore::OverHttp(store)) => store.connect().await,
            Self::Postgres(postgres) => postgres.connect().await,
            Self::Nats(nats) => nats.connect().await,
            Self::Redis(redis) => redis.connect().await,
            // A receiver can't be asked for anything but to take a message.
            Self::Webhook(_) => Ok(()),
            Self::Remote(remote) => remote.connect().await,
        };
        done.map_err(SinkError::visible)
    }

    /// Up to where the store holds what `lane` had for it, for who only reads: a delivery asks for [`Self::held`], whose claims it
    /// needs as well.
    ///
    /// # Errors
    /// [`SinkError`] where the store doesn't answer.
    pub async fn cursor(&self, lane: &Lane) -> Result<Cursor, SinkError> {
        Ok(self.held(lane).await?.map_or(Cursor::Delivery, |held| Cursor::Store(held.position)))
    }

    /// What the store holds of `lane`: its cursor and the claims on it. `None` where the store keeps no cursors.
    ///
    /// # Errors
    /// [`SinkError`] where the store doesn't answer.
    pub async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let done = match self {
            Self::Null | Self::Objects(_) => Ok(None),
            Self::Memory(memory) => memory.held(lane),
            Self::Sqlite(sqlite) => sqlite.held(lane).await.map(Some),
            Self::Elasticsearch(_) => Ok(None),
            Self::Postgres(postgres) => postgres.held(lane).await.map(Some),
            Self::Nats(nats) => nats.held(lane).await.map(Some),
            Self::Redis(redis) => redis.held(lane).await.map(Some),
            Self::Webhook(_) => Ok(None),
            Self::Remote(remote) => remote.held(lane).await,
        };
        done.map_err(SinkError::visible)
    }

    /// Exchanges the claim that the store holds on `lane` for `claim`, together with the cursor, and gives what the store holds then:
    /// what it held before where `takeover` doesn't allow it. To claim again is harmless. A store without cursors has nothing to claim.
    ///
    /// # Errors
    /// [`SinkError`] where the call failed: whether it took effect is unknown.
    pub async fn claim(&self, lane: &Lane, claim: Claim, takeover: Takeover) -> Result<Option<Held>, SinkError> {
        let done = match self {
            Self::Null | Self::Objects(_) => Ok(None),
            Self::Memory(memory) => memory.claim(lane, claim, &takeover),
            Self::Sqlite(sqlite) => sqlite.claim(lane, claim, takeover).await.map(Some),
            Self::Elasticsearch(_) => Ok(None),
            Self::Postgres(postgres) => postgres.claim(lane, claim, &takeover).await.map(Some),
            Self::Nats(nats) => nats.claim(lane, claim, &takeover).await.map(Some),
            Self::Redis(redis) => redis.claim(lane, claim, &takeover).await.map(Some),
            Self::Webhook(_) => Ok(None),
            Self::Remote(remote) => remote.claim(lane, claim, &takeover).await,
        };
        done.map_err(SinkError::visible)
    }

    /// Stores `batch`, or says which of its records it can't store. A lane has one write in flight at a time,
    /// and its batches come in the order of their positions; an earlier one may come again. A fenced store that holds the claim of another
    /// process on the lane writes nothing, and the call fails.
    ///
    /// # Errors
    /// [`SinkError`] where the call failed as a whole: whether it took effect is unknown, and the same batch
    /// is to be sent again.
    pub async fn write(&self, batch: &Batch) -> Result<Report, SinkError> {
        let done = match self {
            Self::Null => Ok(Report::Stored),
            Self::Memory(memory) => memory.write(batch).await,
            Self::Sqlite(sqlite) => sqlite.write(batch).await,
            Self::Objects(store) => store.write(batch).await,
            Self::Elasticsearch(elasticsearch) => elasticsearch.write(batch).await,
            Self::Postgres(postgres) => postgres.write(batch).await,
            Self::Nats(nats) => nats.write(batch).await,
            Self::Redis(redis) => redis.write(batch).await,
            Self::Webhook(webhook) => webhook.write(batch).await,
            Self::Remote(remote) => remote.write(batch).await,
        };
        done.map(Report::visible).map_err(SinkError::visible)
    }

    /// Reads what is stored. No write waits for it, and it doesn't wait for any: it opens by itself what it needs.
    ///
    /// # Errors
    /// [`ReadError`] says whether to ask again later.
    pub async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let done = match self {
            Self::Null => Err(ReadError::Unavailable("a sink that keeps nothing can't be read".into())),
            Self::Objects(_) => Err(ReadError::Unavailable("a store of objects can't be read back".into())),
            Self::Memory(memory) => memory.read(&query),
            Self::Sqlite(sqlite) => sqlite.read(query).await,
            Self::Elasticsearch(elasticsearch) => elasticsearch.read(query).await,
            Self::Postgres(postgres) => postgres.read(query).await,
            Self::Nats(_) => Err(ReadError::Unavailable("a sink for NATS can't be read back".into())),
            Self::Redis(_) => Err(ReadError::Unavailable("a sink for Redis can't be read back".into())),
            Self::Webhook(_) => Err(ReadError::Unavailable("a web hook can't be read back".into())),
            Self::Remote(remote) => remote.read(query).await,
        };
        done.map_err(|error| match error {
            ReadError::Unavailable(mut reason) => {
                make_visible(&mut reason);
                ReadError::Unavailable(reason)
            }
            other => other,
        })
    }

    /// Whether what is stored can be read back.
    #[must_use]
    pub fn can_read(&self) -> bool {
        match self {
            Self::Null | Self::Objects(_) => false,
            Self::Memory(_) | Self::Sqlite(_) => true,
            Self::Elasticsearch(elasticsearch) => elasticsearch.can_read(),
            Self::Postgres(postgres) => postgres.can_read(),
            Self::Nats(_) => false,
            Self::Redis(_) => false,
            Self::Webhook(_) => false,
            Self::Remote(remote) => remote.can_read(),
        }
    }

    /// Ends the calls in flight and closes the connections, for all clones. A later call connects again.
    ///
    /// # Errors
    /// [`SinkError`] where the store couldn't be left tidy. What was answered `Stored` is stored all the same.
    pub async fn close(&self) -> Result<(), SinkError> {
        let done = match self {
            Self::Null | Self::Memory(_) | Self::Objects(_) => Ok(()),
            Self::Sqlite(sqlite) => sqlite.close().await,
            Self::Elasticsearch(elasticsearch) => {
                elasticsearch.close().await;
                Ok(())
            }
            Self::Postgres(postgres) => {
                postgres.close().await;
                Ok(())
            }
            Self::Nats(nats) => {
                nats.close().await;
                Ok(())
            }
            Self::Redis(redis) => {
                redis.close().await;
                Ok(())
            }
            Self::Webhook(webhook) => {
                webhook.close();
                Ok(())
            }
            Self::Remote(remote) => {
                remote.close().await;
                Ok(())
            }
        };
        done.map_err(SinkError::visible)
    }

    /// Whether both share one connection: closing the one closes the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Memory(one), Self::Memory(other)) => one.is_same(other),
            (Self::Sqlite(one), Self::Sqlite(other)) => one.is_same(other),
            (Self::Elasticsearch(one), Self::Elasticsearch(other)) => one.is_same(other),
            (Self::Postgres(one), Self::Postgres(other)) => one.is_same(other),
            (Self::Nats(one), Self::Nats(other)) => one.is_same(other),
            (Self::Redis(one), Self::Redis(other)) => one.is_same(other),
            (Self::Webhook(one), Self::Webhook(other)) => one.is_same(other),
            (Self::Remote(one), Self::Remote(other)) => one.is_same(other),
            (Self::Objects(ObjectStore::Directory(one)), Self::Objects(ObjectStore::Directory(other))) => {
                one.is_same(other)
            }
            (Self::Objects(ObjectStore::OverHttp(one)), Self::Objects(ObjectStore::OverHttp(other))) => {
                one.is_same(other)
            }
            _ => false,
        }
    }

    /// Requests to writers, if the sink is one of a gateway.
    pub(crate) fn caller(&self) -> Option<&crate::remote::caller::Caller> {
        match self {
            Self::Remote(remote) => Some(remote.caller()),
            Self::Objects(ObjectStore::OverHttp(store)) => store.caller(),
            _ => None,
        }
    }

    /// What the store may lose although it has answered, as it was last connected to: in words, for the log. None where that is
    /// nothing, or isn't known.
    #[must_use]
    pub fn caution(&self) -> Option<Reason> {
        if let Some(caller) = self.caller() {
            return caller.binding().caution();
        }
        match self {
            Self::Nats(nats) => nats.caution(),
            Self::Redis(redis) => redis.caution(),
            _ => None,
        }
    }

    /// The longest pause before the next attempt, if the last failure calls for a shorter one than usual.
    #[must_use]
    pub fn retry_max(&self) -> Option<Duration> {
        return self.caller()?.retry_max();
    }

    /// Whether a writer stores its batches.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Remote(_) => true,
            Self::Memory(memory) => memory.is_remote(),
            _ => false,
        }
    }

    /// What delivery must know before it sends anything.
    #[must_use]
    pub fn traits(&self) -> Traits {
        // None but servers fails over to an older copy of itself.
        let traits = Traits { settle: Duration::ZERO, fenced: false, on_this_disk: false };
        match self {
            Self::Null => traits,
            // Another's answer says that most of an object's copies are on disks: none of them takes over from another.
            Self::Objects(store) => Traits { on_this_disk: store.is_on_this_disk(), ..traits },
            Self::Memory(memory) => Traits { settle: memory.settle(), fenced: memory.is_fenced(), ..traits },
            Self::Sqlite(_) => Traits { fenced: true, on_this_disk: true, ..traits },
            Self::Elasticsearch(_) => traits,
            // A server that takes over may be behind the one that failed.
            Self::Postgres(_) => Traits { settle: crate::postgres::SETTLE, fenced: true, ..traits },
            Self::Nats(_) => Traits { settle: crate::nats::SETTLE, fenced: true, ..traits },
            Self::Redis(_) => Traits { settle: crate::redis::SETTLE, fenced: true, ..traits },
            Self::Webhook(_) => traits,
            Self::Remote(remote) => remote.store().traits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futures_move_between_threads_and_null_takes_everything() {
        fn send<T: Send>(value: T) -> T {
            value
        }
        let lane = Lane { origin: event::Origin([1; 16]), shard: 0, sink: "null".into() };
        let sink = Sink::new(SinkConfig::Null);
        let batch = Batch::new(lane.clone(), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(send(sink.connect())), Ok(()));
        assert_eq!(runtime.block_on(send(sink.write(&batch))), Ok(Report::Stored));
        assert_eq!(runtime.block_on(send(sink.cursor(&lane))), Ok(Cursor::Delivery));
        assert_eq!(runtime.block_on(send(sink.close())), Ok(()));
        assert!(!sink.traits().fenced);
    }
}
