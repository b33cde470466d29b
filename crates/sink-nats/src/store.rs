//! The store: its lanes, and the connections that they share.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use event::Lane;

use super::config::NatsConfig;
use super::cursor;
use super::error::Failure;
use super::examine;
use super::lane_state::LaneState;
use super::mark;
use super::preflight::Durability;
use super::write;
use nats::Session;
use sink::close_signal::CloseSignal;
use sink::connection_pool::{ConnectionPool, Lent};
use sink::lane_states::LaneStates;
use sink::{Batch, Capabilities, Claim, Examination, Held, Mark, Reason, SinkError, Store, Takeover, WriteOutcome};

/// How long a server may acknowledge messages before they are on its disk: two minutes by default. Segments are kept
/// for this long, and slightly longer.
const SETTLE: Duration = Duration::from_secs(150);

/// The store.
pub struct Nats {
    config: NatsConfig,
    states: LaneStates<LaneState>,
    pool: ConnectionPool<Link>,
    /// What the stream may lose, according to the last check.
    warning: Mutex<Option<&'static str>>,
    closed: CloseSignal,
}

/// A connection, and the stream's properties when the connection was opened.
#[derive(Debug)]
struct Link {
    session: Session,
    durability: Durability,
    /// The stream's store id, once it was read.
    mark: Option<Mark>,
}

impl Link {
    async fn mark(&mut self, config: &NatsConfig) -> Result<Mark, Failure> {
        if let Some(mark) = self.mark {
            return Ok(mark);
        }
        let mark = mark::of(&mut self.session, config, self.durability.has_age).await?;
        self.mark = Some(mark);
        Ok(mark)
    }

    /// Fails if a batch is for another store.
    async fn check(&mut self, config: &NatsConfig, expected: Option<Mark>) -> Result<(), Failure> {
        if expected.is_none() {
            return Ok(());
        }
        let mark = self.mark(config).await?;
        if mark.is_expected(expected) { Ok(()) } else { Err(Failure::OtherStore(mark)) }
    }
}

#[async_trait]
impl Store for Nats {
    fn capabilities(&self) -> Capabilities {
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.unless_closed(async {
            self.pool.give_back(self.take().await?);
            Ok(())
        })
        .await
    }

    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        self.unless_closed(examine::examine(&self.config)).await
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.unless_closed(async {
            let mut lent = self.take().await?;
            let mark = lent.connection.mark(&self.config).await?;
            self.pool.give_back(lent);
            Ok(Some(mark))
        })
        .await
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            let mut lent = self.take().await?;
            let cursor = cursor::read(&mut lent.connection.session, &self.config.stream, lane, (0, false)).await?;
            self.pool.give_back(lent);
            Ok(Some(state.resume_at(cursor)))
        })
        .await
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            let mut lent = self.take().await?;
            let Link { session, durability, .. } = &mut lent.connection;
            let cursor = write::claim(session, (durability, &self.config), lane, claim, takeover).await?;
            self.pool.give_back(lent);
            Ok(Some(state.resume_at(cursor)))
        })
        .await
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        self.unless_closed(async {
            let state = self.states.of(batch.lane());
            let mut state = state.lock().await;
            let mut lent = self.take().await?;
            lent.connection.check(&self.config, batch.mark()).await?;
            let Link { session, durability, .. } = &mut lent.connection;
            let report = write::write(session, durability, &self.config, batch, &mut state).await?;
            self.pool.give_back(lent);
            Ok(report)
        })
        .await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.closed.close();
        for state in self.states.all() {
            drop(state.lock().await.cursor.take());
        }
        while self.pool.pop().is_some() {}
        Ok(())
    }

    fn warning(&self) -> Option<Reason> {
        let NatsConfig { servers, stream, .. } = &self.config;
        let warning = *self.warning.lock().unwrap_or_else(PoisonError::into_inner);
        warning.map(|warning| format!("NATS {servers}, stream {stream}: {warning}").into())
    }
}

impl Nats {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: NatsConfig) -> Self {
        Self {
            states: LaneStates::default(),
            pool: ConnectionPool::new(Some(config.connections_max), Session::IDLE_MAX),
            warning: Mutex::default(),
            closed: CloseSignal::default(),
            config,
        }
    }

    async fn take(&self) -> Result<Lent<'_, Link>, Failure> {
        let permit = self.pool.permit().await;
        while let Some(mut link) = self.pool.pop() {
            if link.session.check_fresh().await {
                return Ok(permit.lend(link));
            }
        }
        let mut session = Session::open(&self.config.connect_options(), self.config.timeout).await?;
        let durability = Durability::of(&mut session, &self.config).await?;
        *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = durability.warning;
        Ok(permit.lend(Link { session, durability, mark: None }))
    }

    /// Does `work`, unless the sink is closed during it.
    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, SinkError> {
        let done = self.closed.unless_closed(Failure::Closed, work).await;
        done.map_err(|failure| failure.into_sink_error(&self.config))
    }
}
