//! The connections of a sink's lanes: one each, made when the lane first calls and again after whatever failed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::config::RedisConfig;
use super::connecting;
use super::failure::Failure;
use super::script;
use super::session::Session;
use super::standing::Standing;
use crate::{Batch, Report};

/// The lanes that have called.
pub(super) struct Lanes {
    seats: BlockingMutex<HashMap<Lane, Arc<Mutex<Seat>>>>,
    /// A connection that was made before it was known for which lane.
    spare: BlockingMutex<Option<Session>>,
    /// The server as it was last looked at.
    standing: BlockingMutex<Option<Standing>>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A lane's place.
#[derive(Debug, Default)]
struct Seat {
    session: Option<Session>,
    /// Up to where the lane was seen to be stored: a server that has less is another one, or has lost something.
    stored: u64,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            seats: BlockingMutex::default(),
            spare: BlockingMutex::default(),
            standing: BlockingMutex::default(),
            closed: watch::Sender::new(0),
        }
    }
}

fn held<T>(mutex: &BlockingMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub(super) async fn connect(&self, config: &RedisConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            let spare = held(&self.spare).take();
            let session = self.find(config, spare).await?;
            *held(&self.spare) = Some(session);
            Ok(())
        })
        .await
    }

    pub(super) async fn cursor(&self, config: &RedisConfig, lane: &Lane) -> Result<u64, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            let mut session = self.take(config, &mut seat).await?;
            let position = script::read_cursor(&mut session, config, lane).await?;
            *seat = Seat { session: Some(session), stored: position };
            Ok(position)
        })
        .await
    }

    pub(super) async fn write(&self, config: &RedisConfig, batch: &Batch) -> Result<Report, Failure> {
        self.unless_closed(async {
            let seat = self.seat(batch.lane());
            let mut seat = seat.lock().await;
            // Taken out: a call that fails or is dropped on the way leaves no connection in an unknown state.
            let mut session = self.take(config, &mut seat).await?;
            let report = script::write(&mut session, config, batch, &mut seat.stored).await?;
            seat.session = Some(session);
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        let seats: Vec<_> = held(&self.seats).values().cloned().collect();
        drop(held(&self.spare).take());
        for seat in seats {
            drop(seat.lock().await.session.take());
        }
    }

    /// What the server may lose, as it was last looked at.
    pub(super) fn caution(&self) -> Option<String> {
        held(&self.standing).as_ref().and_then(|standing| standing.caution.clone())
    }

    fn seat(&self, lane: &Lane) -> Arc<Mutex<Seat>> {
        held(&self.seats).entry(lane.clone()).or_default().clone()
    }

    /// The lane's connection, or the spare one, or a new one.
    async fn take(&self, config: &RedisConfig, seat: &mut Seat) -> Result<Session, Failure> {
        let session = seat.session.take().or_else(|| held(&self.spare).take());
        self.find(config, session).await
    }

    async fn find(&self, config: &RedisConfig, session: Option<Session>) -> Result<Session, Failure> {
        if let Some(mut session) = session
            && connecting::is_current(config, &mut session).await
        {
            return Ok(session);
        }
        let (session, standing) = connecting::open(config).await?;
        *held(&self.standing) = Some(standing);
        Ok(session)
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
