//! The store and its lanes: each has one call in flight.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use event::Lane;
use event::read::{Found, Lookup, Page, Query, ReadError};

use super::config::PostgresConfig;
use super::error::Failure;
use super::examine;
use super::pool::Pool;
use super::reader::Reader;
use super::transaction;
use sink::close_signal::CloseSignal;
use sink::lane_states::LaneStates;
use sink::read_pool::ReadPool;
use sink::{Batch, Capabilities, Claim, Examination, Held, Mark, Reason, SinkError, Store, Takeover, WriteOutcome};

/// How long a standby may lag when it takes over, without the loss of an event: segments are kept for this long.
const SETTLE: Duration = Duration::from_mins(1);

/// The store.
pub struct Postgres {
    config: PostgresConfig,
    states: LaneStates<LaneState>,
    pool: Pool,
    closed: CloseSignal,
    reads: ReadPool,
    /// The warning about what the server may lose, from the last check.
    warning: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct LaneState {
    /// How many attempts in a row found no record that the server accepts.
    fruitless: u32,
}

/// How many records are tried alone if the server rejects a whole batch. The number doubles with each attempt, up to a
/// limit: most of a backlog may be at fault, and the others must be found.
const PROBES: usize = 2;
const PROBES_DOUBLED_MAX: u32 = 5;

#[async_trait]
impl Store for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    fn can_read(&self) -> bool {
        self.config.is_readable()
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        self.reads.read(query).await
    }

    async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        self.reads.get(lookup).await
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.unless_closed(async {
            let lent = self.pool.take(&self.config).await?;
            self.warning.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&lent.connection.table.warning);
            self.pool.give_back(lent);
            Ok(())
        })
        .await
    }

    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        self.unless_closed(examine::examine(&self.config)).await
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.unless_closed(async {
            let mut lent = self.pool.take(&self.config).await?;
            let mark = lent.connection.mark(&self.config).await?;
            self.pool.give_back(lent);
            Ok(Some(mark))
        })
        .await
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let _guard = state.lock().await;
            let mut lent = self.pool.take(&self.config).await?;
            let (talk, driver) = lent.connection.session.parts();
            let held = driver.run(transaction::read(talk, &lent.connection.table, lane)).await?;
            self.pool.give_back(lent);
            Ok(Some(held))
        })
        .await
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let _guard = state.lock().await;
            let mut lent = self.pool.take(&self.config).await?;
            let (talk, driver) = lent.connection.session.parts();
            let exchange = transaction::exchange_claim(talk, &lent.connection.table, lane, claim, takeover);
            let held = driver.run(exchange).await?;
            self.pool.give_back(lent);
            Ok(Some(held))
        })
        .await
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        self.unless_closed(async {
            let state = self.states.of(batch.lane());
            let mut state = state.lock().await;
            let mut lent = self.pool.take(&self.config).await?;
            let probes = PROBES << state.fruitless.min(PROBES_DOUBLED_MAX);
            let written = lent.connection.write_to_current_table(&self.config, batch, probes).await;
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

    fn warning(&self) -> Option<Reason> {
        let warning = self.warning.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(format!("PostgreSQL {}, table {}: {warning}", self.config.server, self.config.table).into())
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.reads.close().await;
        self.closed.close();
        for state in self.states.all() {
            drop(state.lock().await);
        }
        self.pool.close().await;
        Ok(())
    }
}

impl Postgres {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: PostgresConfig) -> Self {
        let (pool, to_read) = (Pool::new(&config.connections), config.clone());
        let reads = ReadPool::new("postgres-read", config.connections.readers, move || Reader::new(to_read.clone()));
        Self {
            config,
            states: LaneStates::default(),
            pool,
            closed: CloseSignal::default(),
            reads,
            warning: Mutex::default(),
        }
    }

    /// Does `work`, unless the sink is closed during it.
    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, SinkError> {
        let done = self.closed.unless_closed(Failure::Closed, work).await;
        done.map_err(|failure| failure.into_sink_error(&self.config))
    }
}
