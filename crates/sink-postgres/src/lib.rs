//! PostgreSQL: a table of a server, or of whichever of several takes writes.
//!
//! Fenced: a lane's cursor is set in the transaction of its rows. LaneConnections share connections, of which there are as many as lanes at most;
//! reads have one of their own, on a thread of their own. A connection begins with the first call.

mod bisect;
mod columns;
mod config;
mod conflict;
mod connection_limits;
mod connections;
mod creation;
mod creation_lock;
mod error;
mod kind;
mod mapping;
mod mark;
mod numeric;
mod open_session;
mod partitions;
mod pool;
mod pooler;
mod read;
mod reader;
mod session;
mod settings;
mod table;
mod transaction;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::read::{Page, Query, ReadError};

pub use config::{
    Column, Conflict, InvalidServer, Layout, Partition, PayloadKind, PostgresConfig, QualifiedName, Server,
};
pub use connection_limits::{Connections, Pooler};
pub use kind::{Kind, UnknownKind};
pub use settings::KIND;

use connections::LaneConnections;
use reader::Reader;
use sink::read_thread::ReadThread;
use sink::{Batch, Capabilities, Claim, Held, Mark, SinkError, Store, Takeover, WriteOutcome};

/// How long a standby may be behind when it takes over, without an event being lost: segments stay for as long.
pub(crate) const SETTLE: Duration = Duration::from_mins(1);

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Postgres {
    shared: Arc<Shared>,
}

struct Shared {
    config: PostgresConfig,
    lanes: LaneConnections,
    reads: ReadThread,
}

impl Postgres {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: PostgresConfig) -> Self {
        let lanes = LaneConnections::new(&config);
        Self { shared: Arc::new(Shared { config, lanes, reads: ReadThread::new("postgres-read") }) }
    }
}

impl Store for Postgres {
    fn capabilities(&self) -> Capabilities {
        // A standby that takes over may be behind the server that failed.
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    /// Whether the table has all that an event is.
    fn can_read(&self) -> bool {
        matches!(self.shared.config.layout, Layout::Whole { .. })
    }

    async fn connect(&self) -> Result<(), SinkError> {
        let Shared { config, lanes, .. } = &*self.shared;
        lanes.connect(config).await.map_err(|failure| failure.into_sink_error(config))
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        let Shared { config, lanes, .. } = &*self.shared;
        lanes.mark(config).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let Shared { config, lanes, .. } = &*self.shared;
        lanes.held(config, lane).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        let Shared { config, lanes, .. } = &*self.shared;
        lanes.claim(config, lane, (claim, takeover)).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let Shared { config, lanes, .. } = &*self.shared;
        lanes.write(config, batch).await.map_err(|failure| failure.into_sink_error(config))
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let Shared { config, reads, .. } = &*self.shared;
        let config = config.clone();
        reads.read(move || Reader::new(config), query).await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.shared.reads.close().await;
        self.shared.lanes.close().await;
        Ok(())
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.shared.config).finish()
    }
}
