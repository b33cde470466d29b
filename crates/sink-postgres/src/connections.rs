//! The lanes of a sink: each has one call in flight.

use std::future::Future;
use std::pin::pin;

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::watch;

use super::config::PostgresConfig;
use super::error::Failure;
use super::pool::Pool;
use super::transaction;
use sink::lane_states::LaneStates;
use sink::{Batch, Claim, Held, Mark, Takeover, WriteOutcome};

/// The lanes that have called, and the connections that they share.
pub(super) struct LaneConnections {
    states: LaneStates<LaneState>,
    pool: Pool,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LaneState {
    /// How many attempts in a row have found no record that the server takes.
    fruitless: u32,
}

/// So many records are tried by themselves if the server refuses a whole batch, and twice as many with each attempt, up to a limit:
/// most of a backlog may be at fault, and the others are to be found.
const PROBES: usize = 2;
const PROBES_DOUBLED_MAX: u32 = 5;

impl LaneConnections {
    pub(super) fn new(config: &PostgresConfig) -> Self {
        let pool = Pool::new(&config.connections);
        Self { states: LaneStates::default(), pool, closed: watch::Sender::new(0) }
    }

    pub(super) async fn connect(&self, config: &PostgresConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            self.pool.give_back(self.pool.take(config).await?);
            Ok(())
        })
        .await
    }

    pub(super) async fn mark(&self, config: &PostgresConfig) -> Result<Mark, Failure> {
        self.unless_closed(async {
            let mut lent = self.pool.take(config).await?;
            let mark = lent.connection.mark(config).await?;
            self.pool.give_back(lent);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &PostgresConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let _turn = state.lock().await;
            let mut lent = self.pool.take(config).await?;
            let (talk, driver) = lent.connection.session.parts();
            let held = driver.run(transaction::read(talk, &lent.connection.table, lane)).await?;
            self.pool.give_back(lent);
            Ok(held)
        })
        .await
    }

    pub(super) async fn claim(
        &self,
        config: &PostgresConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let _turn = state.lock().await;
            let mut lent = self.pool.take(config).await?;
            let (talk, driver) = lent.connection.session.parts();
            let exchange = transaction::exchange_claim(talk, &lent.connection.table, lane, claim, takeover);
            let held = driver.run(exchange).await?;
            self.pool.give_back(lent);
            Ok(held)
        })
        .await
    }

    pub(super) async fn write(&self, config: &PostgresConfig, batch: &Batch) -> Result<WriteOutcome, Failure> {
        self.unless_closed(async {
            let state = self.states.of(batch.lane());
            let mut state = state.lock().await;
            let mut lent = self.pool.take(config).await?;
            let probes = PROBES << state.fruitless.min(PROBES_DOUBLED_MAX);
            let written = lent.connection.write_as_it_is_now(config, batch, probes).await;
            state.fruitless = match &written {
                Err(Failure::NoRowPasses { .. }) => state.fruitless.saturating_add(1),
                Err(_) => state.fruitless,
                Ok(_) => 0,
            };
            let report = written?;
            self.pool.give_back(lent);
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        for state in self.states.all() {
            drop(state.lock().await);
        }
        self.pool.close().await;
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
