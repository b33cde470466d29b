//! The lanes of a sink: each has one call in flight, and remembers up to where it was seen to be stored.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::config::PostgresConfig;
use super::failure::Failure;
use super::pool::Pool;
use super::transaction;
use crate::{Batch, Claim, Held, Mark, Report, Takeover};

/// The lanes that have called, and the connections that they share.
pub(super) struct Lanes {
    seats: BlockingMutex<HashMap<Lane, Arc<Mutex<Seat>>>>,
    pool: Pool,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A lane's place.
#[derive(Debug, Default)]
struct Seat {
    /// Up to where the lane was seen to be stored: a server that has less is another one, or an older copy.
    stored: u64,
    /// How many attempts in a row have found no record that the server takes.
    fruitless: u32,
}

/// So many records are tried by themselves if the server refuses a whole batch, and twice as many with each attempt, up to a limit:
/// most of a backlog may be at fault, and the others are to be found.
const PROBES: usize = 2;
const PROBES_DOUBLED_MAX: u32 = 5;

impl Lanes {
    pub(super) fn new(config: &PostgresConfig) -> Self {
        let pool = Pool::new(&config.connections);
        Self { seats: BlockingMutex::default(), pool, closed: watch::Sender::new(0) }
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
            let mark = lent.open.mark(config).await?;
            self.pool.give_back(lent);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &PostgresConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            let held = self.look(config, lane).await?;
            seat.stored = held.position;
            Ok(held)
        })
        .await
    }

    /// The same for another lane than the caller's own: what this one was seen to have stored stays as it is.
    pub(super) async fn peek(&self, config: &PostgresConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(self.look(config, lane)).await
    }

    async fn look(&self, config: &PostgresConfig, lane: &Lane) -> Result<Held, Failure> {
        let mut lent = self.pool.take(config).await?;
        let (talk, driver) = lent.open.session.parts();
        let held = driver.run(transaction::read(talk, &lent.open.table, lane)).await?;
        self.pool.give_back(lent);
        Ok(held)
    }

    pub(super) async fn claim(
        &self,
        config: &PostgresConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            let mut lent = self.pool.take(config).await?;
            let (talk, driver) = lent.open.session.parts();
            let exchange = transaction::exchange_claim(talk, &lent.open.table, lane, claim, takeover);
            let held = driver.run(exchange).await?;
            self.pool.give_back(lent);
            seat.stored = held.position;
            Ok(held)
        })
        .await
    }

    pub(super) async fn write(&self, config: &PostgresConfig, batch: &Batch) -> Result<Report, Failure> {
        self.unless_closed(async {
            let seat = self.seat(batch.lane());
            let mut seat = seat.lock().await;
            // Given back at the end only: a call that fails or is dropped on the way leaves no connection in an unknown state.
            let mut lent = self.pool.take(config).await?;
            let probes = PROBES << seat.fruitless.min(PROBES_DOUBLED_MAX);
            let written = lent.open.write_as_it_is_now(config, batch, (seat.stored, probes)).await;
            seat.fruitless = match &written {
                Err(Failure::NoRowPasses { .. }) => seat.fruitless.saturating_add(1),
                Err(_) => seat.fruitless,
                Ok(_) => 0,
            };
            let report = written?;
            self.pool.give_back(lent);
            if report == Report::Stored {
                seat.stored = seat.stored.max(batch.last());
            }
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        let seats: Vec<_> = self.seats.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for seat in seats {
            drop(seat.lock().await);
        }
        self.pool.close().await;
    }

    fn seat(&self, lane: &Lane) -> Arc<Mutex<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).entry(lane.clone()).or_default().clone()
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
