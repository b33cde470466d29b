//! NATS JetStream: messages of a stream.
//!
//! Fenced: a run of records is one atomic batch, whose last message is the lane's cursor, on a subject of its own and with the
//! sequence that the cursor before it must have. Each lane has a connection of its own, which begins with the first call, and one
//! batch in flight at most.

mod api;
mod api_error;
mod config;
mod connections;
mod credentials;
mod cursor;
mod error;
mod lane_state;
mod mapping;
mod mark;
mod preflight;
mod protocol;
mod publish;
mod server;
mod session;
mod settings;
mod stream_name;
mod subject;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::read::{Page, Query, ReadError};

pub use config::{Creation, NatsConfig, REPLICAS_MAX};
pub use server::{InvalidServers, Servers};
pub use settings::KIND;
pub use stream_name::{InvalidStream, StreamName};
pub use subject::{InvalidSubject, SubjectPattern};

use connections::LaneConnections;
use sink::{Batch, Capabilities, Claim, Held, Mark, Reason, SinkError, Store, Takeover, WriteOutcome};

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
    lanes: LaneConnections,
}

impl Nats {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: NatsConfig) -> Self {
        let lanes = LaneConnections::new(&config);
        Self { shared: Arc::new(Shared { config, lanes }) }
    }
}

impl Store for Nats {
    fn capabilities(&self) -> Capabilities {
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.connect(config).await.map_err(|failure| failure.into_sink_error(config))
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.mark(config).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.held(config, lane).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.claim(config, lane, (claim, takeover)).await.map(Some).map_err(|failure| failure.into_sink_error(config))
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let Shared { config, lanes } = &*self.shared;
        lanes.write(config, batch).await.map_err(|failure| failure.into_sink_error(config))
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.shared.lanes.close().await;
        Ok(())
    }

    /// What the stream that was last connected to may lose although the server has answered.
    fn warning(&self) -> Option<Reason> {
        let Shared { config, lanes } = &*self.shared;
        lanes.warning().map(|warning| format!("NATS {}, stream {}: {warning}", config.servers, config.stream).into())
    }

    async fn read(&self, _: Query) -> Result<Page, ReadError> {
        Err(ReadError::Unavailable("a sink for NATS can't be read back".into()))
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nats").field(&self.shared.config).finish()
    }
}
