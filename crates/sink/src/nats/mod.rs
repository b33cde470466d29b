//! NATS JetStream: messages of a stream.
//!
//! Fenced: a run of records is one atomic batch, whose last message is the lane's cursor, on a subject of its own and with the
//! sequence that the cursor before it must have. Each lane has a connection of its own, which begins with the first call, and one
//! batch in flight at most.

mod api;
mod config;
mod credentials;
mod cursor;
mod failure;
mod lanes;
mod publish;
mod row;
mod server;
mod session;
mod standing;
mod subject;
mod wire;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;

pub use config::{Creation, InvalidStream, NatsConfig, REPLICAS_MAX, StreamName};
pub use server::{InvalidServers, Servers};
pub use subject::{InvalidSubject, SubjectPattern};

use crate::{Batch, Claim, Held, Reason, Report, SinkError, Takeover};
use lanes::Lanes;

/// How long a server may be behind its answers: it brings what it has stored to its disk every two minutes, unless it is told
/// otherwise. Segments stay for as long, and a little longer.
pub(crate) const SETTLE: Duration = Duration::from_secs(150);

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Nats {
    shared: Arc<Shared>,
}

struct Shared {
    config: NatsConfig,
    lanes: Lanes,
}

impl Nats {
    pub(crate) fn new(config: NatsConfig) -> Self {
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

    /// What the stream that was last connected to may lose although the server has answered.
    pub(crate) fn caution(&self) -> Option<Reason> {
        let Shared { config, lanes } = &*self.shared;
        lanes.caution().map(|caution| format!("NATS {}, stream {}: {caution}", config.servers, config.stream).into())
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nats").field(&self.shared.config).finish()
    }
}
