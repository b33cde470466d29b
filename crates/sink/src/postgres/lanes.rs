//! The connections of a sink's lanes: one each, made when the lane first calls and again after whatever failed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::config::PostgresConfig;
use super::failure::Failure;
use super::session::Session;
use super::table::Table;
use super::transaction;
use crate::{Batch, Report};

/// The lanes that have called.
pub(super) struct Lanes {
    seats: BlockingMutex<HashMap<Lane, Arc<Mutex<Seat>>>>,
    /// A connection that was made before it was known for which lane.
    spare: BlockingMutex<Option<Open>>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A lane's place.
#[derive(Debug, Default)]
struct Seat {
    open: Option<Open>,
    /// Up to where the lane was seen to be stored: a server that has less is another one, or an older copy.
    stored: u64,
}

/// A connection to a table that fits.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) table: Table,
}

impl Open {
    pub(super) async fn new(config: &PostgresConfig) -> Result<Self, Failure> {
        let mut session = Session::open(config).await?;
        let (talk, driver) = session.parts();
        let table = driver.run(Table::open(talk, config)).await?;
        Ok(Self { session, table })
    }

    async fn write(&mut self, batch: &Batch, at_least: u64) -> Result<Report, Failure> {
        let (talk, driver) = self.session.parts();
        driver.run(transaction::write(talk, &self.table, batch, at_least)).await
    }

    /// Whether the table isn't any more what it was when the connection was made.
    async fn is_outdated(&mut self) -> Result<bool, Failure> {
        let (talk, driver) = self.session.parts();
        driver.run(self.table.has_changed(talk)).await
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self { seats: BlockingMutex::default(), spare: BlockingMutex::default(), closed: watch::Sender::new(0) }
    }
}

impl Lanes {
    pub(super) async fn connect(&self, config: &PostgresConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            let spare = self.take_spare();
            let open = self.find(config, spare).await?;
            *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
            Ok(())
        })
        .await
    }

    pub(super) async fn cursor(&self, config: &PostgresConfig, lane: &Lane) -> Result<u64, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            let mut open = self.take(config, &mut seat).await?;
            let (talk, driver) = open.session.parts();
            let position = driver.run(transaction::read_cursor(talk, &open.table, lane)).await?;
            *seat = Seat { open: Some(open), stored: position };
            Ok(position)
        })
        .await
    }

    pub(super) async fn write(&self, config: &PostgresConfig, batch: &Batch) -> Result<Report, Failure> {
        self.unless_closed(async {
            let seat = self.seat(batch.lane());
            let mut seat = seat.lock().await;
            // Taken out: a call that fails or is dropped on the way leaves no connection in an unknown state.
            let mut open = self.take(config, &mut seat).await?;
            let stored = seat.stored;
            let mut report = open.write(batch, stored).await?;
            // What is refused is given up: not for a type that a column had when the connection was made.
            if matches!(report, Report::Withheld { .. }) && open.is_outdated().await? {
                open = Open::new(config).await?;
                report = open.write(batch, stored).await?;
            }
            seat.open = Some(open);
            if report == Report::Stored {
                seat.stored = stored.max(batch.last());
            }
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        let seats: Vec<_> = self.seats.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut open: Vec<Open> = self.take_spare().into_iter().collect();
        for seat in seats {
            open.extend(seat.lock().await.open.take());
        }
        for Open { session, .. } in open {
            session.close().await;
        }
    }

    fn take_spare(&self) -> Option<Open> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn seat(&self, lane: &Lane) -> Arc<Mutex<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).entry(lane.clone()).or_default().clone()
    }

    /// The lane's connection, or the spare one, or a new one.
    async fn take(&self, config: &PostgresConfig, seat: &mut Seat) -> Result<Open, Failure> {
        let open = seat.open.take().or_else(|| self.take_spare());
        self.find(config, open).await
    }

    async fn find(&self, config: &PostgresConfig, open: Option<Open>) -> Result<Open, Failure> {
        if let Some(mut open) = open
            && open.session.is_fresh().await
        {
            return Ok(open);
        }
        Open::new(config).await
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
