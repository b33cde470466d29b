//! Redis: streams, lists, sets, hashes, strings, counters and channels of a server, of a master that sentinels watch, or of a cluster.
//!
//! Fenced: one script applies a run of records and sets the lane's cursor, which stands in a hash beside the data. Each
//! lane has a connection of its own to each server that it writes to, which begins with the first call, and one script in flight at most.

mod address;
mod ask;
mod cluster;
mod config;
mod connecting;
mod connections;
mod deployment;
mod error;
mod invalid_server;
mod mapping;
mod mark;
mod preflight;
mod protocol;
mod script;
mod sentinel;
mod server;
mod session;
mod settings;
mod slot_cursors;
mod slots;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::read::{Page, Query, ReadError};

pub use address::Address;
pub use config::{InvalidKey, KeyPattern, RedisConfig, Structure};
pub use deployment::{Deployment, Sentinel};
pub use invalid_server::InvalidServer;
pub use server::Server;
pub use settings::KIND;

use connections::LaneConnections;
use sink::{Batch, Capabilities, Claim, Held, Mark, Reason, SinkError, Store, Takeover, WriteOutcome};

/// How long a replica may be behind when it takes over, or a disk behind its server, without an event being lost:
/// segments stay for as long.
pub(crate) const SETTLE: Duration = Duration::from_mins(1);

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Redis {
    lanes: Arc<LaneConnections>,
}

impl Redis {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: RedisConfig) -> Self {
        Self { lanes: Arc::new(LaneConnections::new(config)) }
    }
}

impl Store for Redis {
    fn capabilities(&self) -> Capabilities {
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.lanes.connect().await
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.lanes.mark().await.map(Some)
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.lanes.held(lane).await.map(Some)
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        self.lanes.claim(lane, claim, takeover).await.map(Some)
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        self.lanes.write(batch).await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.lanes.close().await;
        Ok(())
    }

    /// What the server that was last connected to may lose although it has answered.
    fn warning(&self) -> Option<Reason> {
        let place = self.lanes.config.place();
        self.lanes.warning().map(|warning| format!("Redis {place}: {warning}").into())
    }

    async fn read(&self, _: Query) -> Result<Page, ReadError> {
        Err(ReadError::Unavailable("a sink for Redis can't be read back".into()))
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.lanes.config).finish()
    }
}
