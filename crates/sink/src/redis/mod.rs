//! Redis: streams, lists, sets, hashes, strings, counters and channels of a server, of a master that sentinels watch, or of a cluster.
//!
//! Fenced: one script applies a run of records and sets the lane's cursor, which stands in a hash beside the data. Each
//! lane has a connection of its own to each server that it writes to, which begins with the first call, and one script in flight at most.

mod address;
mod ask;
mod cluster;
mod config;
mod connecting;
mod deployment;
mod failure;
mod lanes;
mod places;
mod row;
mod script;
mod sentinel;
mod server;
mod session;
mod slots;
mod standing;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;

pub use address::Address;
pub use config::{InvalidKey, KeyPattern, RedisConfig, Structure};
pub use deployment::{Deployment, Sentinel};
pub use server::{InvalidServer, Server};

use crate::{Batch, Claim, Held, Reason, Report, SinkError, Takeover};
use lanes::Lanes;

/// How long a replica may be behind when it takes over, or a disk behind its server, without an event being lost:
/// segments stay for as long.
pub(crate) const SETTLE: Duration = Duration::from_mins(1);

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Redis {
    shared: Arc<Shared>,
}

struct Shared {
    config: RedisConfig,
    lanes: Lanes,
}

impl Redis {
    pub(crate) fn new(config: RedisConfig) -> Self {
        let lanes = Lanes::new(&config);
        Self { shared: Arc::new(Shared { config, lanes }) }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.connect(config).await.map_err(|failure| failure.into_sink_error(config))
    }

    pub(crate) async fn held(&self, lane: &Lane) -> Result<Held, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.held(config, lane).await.map_err(|failure| failure.into_sink_error(config))
    }

    pub(crate) async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Held, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.claim(config, lane, (claim, takeover)).await.map_err(|failure| failure.into_sink_error(config))
    }

    pub(crate) async fn write(&self, batch: &Batch) -> Result<Report, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.write(config, batch).await.map_err(|failure| failure.into_sink_error(config))
    }

    pub(crate) async fn close(&self) {
        self.shared.lanes.close().await;
    }

    /// What the server that was last connected to may lose although it has answered.
    pub(crate) fn caution(&self) -> Option<Reason> {
        let Shared { config, lanes } = &*self.shared;
        lanes.caution().map(|caution| format!("Redis {}: {caution}", config.place()).into())
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.shared.config).finish()
    }
}
