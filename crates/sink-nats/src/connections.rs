//! The lanes of a sink, and the connections that they share.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex as BlockingMutex, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::watch;

use super::config::NatsConfig;
use super::cursor;
use super::error::Failure;
use super::lane_state::LaneState;
use super::mark;
use super::preflight::Durability;
use super::session::{IDLE_MAX, Session};
use super::write;
use sink::connection_pool::{ConnectionPool, Lent};
use sink::lane_states::LaneStates;
use sink::{Batch, Claim, Held, Mark, Takeover, WriteOutcome};

/// The lanes that have called.
pub(super) struct LaneConnections {
    states: LaneStates<LaneState>,
    pool: ConnectionPool<Link>,
    /// What the stream may lose, as it was last looked at.
    warning: BlockingMutex<Option<&'static str>>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A connection, and the stream as it was when the connection was made.
#[derive(Debug)]
struct Link {
    session: Session,
    durability: Durability,
    /// The stream's mark, if it was asked for.
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

    /// Fails where a batch is for another store.
    async fn check(&mut self, config: &NatsConfig, expected: Option<Mark>) -> Result<(), Failure> {
        if expected.is_none() {
            return Ok(());
        }
        let mark = self.mark(config).await?;
        if mark.is_expected(expected) { Ok(()) } else { Err(Failure::OtherStore(mark)) }
    }
}

impl LaneConnections {
    pub(super) fn new(config: &NatsConfig) -> Self {
        Self {
            states: LaneStates::default(),
            pool: ConnectionPool::new(Some(config.connections_max), IDLE_MAX),
            warning: BlockingMutex::default(),
            closed: watch::Sender::new(0),
        }
    }

    pub(super) async fn connect(&self, config: &NatsConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            self.pool.give_back(self.take(config).await?);
            Ok(())
        })
        .await
    }

    pub(super) async fn mark(&self, config: &NatsConfig) -> Result<Mark, Failure> {
        self.unless_closed(async {
            let mut lent = self.take(config).await?;
            let mark = lent.connection.mark(config).await?;
            self.pool.give_back(lent);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &NatsConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            let mut lent = self.take(config).await?;
            let cursor = cursor::read(&mut lent.connection.session, &config.stream, lane, (0, false)).await?;
            self.pool.give_back(lent);
            Ok(state.goes_on_from(cursor))
        })
        .await
    }

    pub(super) async fn claim(
        &self,
        config: &NatsConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            let mut lent = self.take(config).await?;
            let Link { session, durability, .. } = &mut lent.connection;
            let cursor = write::claim(session, (durability, config), lane, claim, takeover).await?;
            self.pool.give_back(lent);
            Ok(state.goes_on_from(cursor))
        })
        .await
    }

    pub(super) async fn write(&self, config: &NatsConfig, batch: &Batch) -> Result<WriteOutcome, Failure> {
        self.unless_closed(async {
            let state = self.states.of(batch.lane());
            let mut state = state.lock().await;
            let mut lent = self.take(config).await?;
            lent.connection.check(config, batch.mark()).await?;
            let Link { session, durability, .. } = &mut lent.connection;
            let report = write::write(session, durability, config, batch, &mut state).await?;
            self.pool.give_back(lent);
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        for state in self.states.all() {
            drop(state.lock().await.cursor.take());
        }
        while self.pool.pop().is_some() {}
    }

    /// What the stream may lose, as it was last looked at.
    pub(super) fn warning(&self) -> Option<&'static str> {
        *self.warning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, config: &NatsConfig) -> Result<Lent<'_, Link>, Failure> {
        let permit = self.pool.permit().await;
        while let Some(mut link) = self.pool.pop() {
            if link.session.is_fresh().await {
                return Ok(permit.lend(link));
            }
        }
        let mut session = Session::open(config).await?;
        let durability = Durability::of(&mut session, config).await?;
        *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = durability.warning;
        Ok(permit.lend(Link { session, durability, mark: None }))
    }

    /// Does `work`, unless the sink is closed meanwhile.
    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let mut closed = self.closed.subscribe();
        match select(pin!(work), pin!(closed.changed())).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(Failure::Closed),
        }
    }
}
