//! The connections of a sink's lanes: one each, made when the lane first calls and again after whatever failed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::config::NatsConfig;
use super::cursor::{self, Cursor};
use super::failure::Failure;
use super::mark;
use super::session::Session;
use super::standing::Standing;
use super::write;
use crate::{Batch, Claim, Held, Mark, Report, Takeover};

/// The lanes that have called.
pub(super) struct Lanes {
    seats: BlockingMutex<HashMap<Lane, Arc<Mutex<Seat>>>>,
    /// A connection that was made before it was known for which lane.
    spare: BlockingMutex<Option<Link>>,
    /// What the stream may lose, as it was last looked at.
    caution: BlockingMutex<Option<&'static str>>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A connection, and the stream as it was when the connection was made.
#[derive(Debug)]
struct Link {
    session: Session,
    standing: Standing,
    /// The stream's mark, if it was asked for.
    mark: Option<Mark>,
}

impl Link {
    async fn mark(&mut self, config: &NatsConfig) -> Result<Mark, Failure> {
        if let Some(mark) = self.mark {
            return Ok(mark);
        }
        let mark = mark::of(&mut self.session, config, self.standing.has_age).await?;
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

/// A lane's place.
#[derive(Debug, Default)]
pub(super) struct Seat {
    link: Option<Link>,
    /// The cursor that this lane has left behind; unknown after whatever failed.
    pub(super) cursor: Option<Cursor>,
    /// Up to where the lane was seen to be stored: a stream that has less is another one, or has lost something.
    pub(super) stored: u64,
}

impl Seat {
    /// Goes on from this cursor, wherever it is.
    fn stand_at(&mut self, link: Link, cursor: Cursor) -> Held {
        let held = Held::new(cursor.position, cursor.claim);
        *self = Self { link: Some(link), stored: cursor.position, cursor: Some(cursor) };
        held
    }

    /// A cursor that was read, unless it lies before what was stored.
    pub(super) fn checked(&self, cursor: Cursor) -> Result<Cursor, Failure> {
        if cursor.position < self.stored {
            return Err(Failure::LostTail { position: cursor.position, stored: self.stored });
        }
        Ok(cursor)
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            seats: BlockingMutex::default(),
            spare: BlockingMutex::default(),
            caution: BlockingMutex::default(),
            closed: watch::Sender::new(0),
        }
    }
}

fn held<T>(mutex: &BlockingMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lanes {
    pub(super) async fn connect(&self, config: &NatsConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            let spare = held(&self.spare).take();
            let link = self.find(config, spare).await?;
            *held(&self.spare) = Some(link);
            Ok(())
        })
        .await
    }

    pub(super) async fn mark(&self, config: &NatsConfig) -> Result<Mark, Failure> {
        self.unless_closed(async {
            let spare = held(&self.spare).take();
            let mut link = self.find(config, spare).await?;
            let mark = link.mark(config).await?;
            *held(&self.spare) = Some(link);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &NatsConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            self.look(config, &mut seat, lane).await
        })
        .await
    }

    /// The same for another lane than the caller's own: what this one was seen to have stored stays as it is.
    pub(super) async fn peek(&self, config: &NatsConfig, lane: &Lane) -> Result<Held, Failure> {
        let mut seat = Seat::default();
        let found = self.unless_closed(self.look(config, &mut seat, lane)).await;
        if let Some(link) = seat.link {
            held(&self.spare).get_or_insert(link);
        }
        found
    }

    async fn look(&self, config: &NatsConfig, seat: &mut Seat, lane: &Lane) -> Result<Held, Failure> {
        let mut link = self.take(config, seat).await?;
        let cursor = cursor::read(&mut link.session, &config.stream, lane, (0, false)).await?;
        Ok(seat.stand_at(link, cursor))
    }

    pub(super) async fn claim(
        &self,
        config: &NatsConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            let mut link = self.take(config, &mut seat).await?;
            let Link { session, standing, .. } = &mut link;
            let cursor = write::claim(session, (standing, config), lane, claim, takeover).await?;
            Ok(seat.stand_at(link, cursor))
        })
        .await
    }

    pub(super) async fn write(&self, config: &NatsConfig, batch: &Batch) -> Result<Report, Failure> {
        self.unless_closed(async {
            let seat = self.seat(batch.lane());
            let mut seat = seat.lock().await;
            // Taken out: a call that fails or is dropped on the way leaves no connection in an unknown state, and no cursor.
            let mut link = self.take(config, &mut seat).await?;
            link.check(config, batch.mark()).await?;
            let report = write::write(&mut link.session, &link.standing, config, batch, &mut seat).await?;
            seat.link = Some(link);
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
            drop(seat.lock().await.link.take());
        }
    }

    /// What the stream may lose, as it was last looked at.
    pub(super) fn caution(&self) -> Option<&'static str> {
        *held(&self.caution)
    }

    fn seat(&self, lane: &Lane) -> Arc<Mutex<Seat>> {
        held(&self.seats).entry(lane.clone()).or_default().clone()
    }

    /// The lane's connection, or the spare one, or a new one.
    async fn take(&self, config: &NatsConfig, seat: &mut Seat) -> Result<Link, Failure> {
        let link = seat.link.take().or_else(|| held(&self.spare).take());
        self.find(config, link).await
    }

    async fn find(&self, config: &NatsConfig, link: Option<Link>) -> Result<Link, Failure> {
        if let Some(mut link) = link
            && link.session.is_fresh().await
        {
            return Ok(link);
        }
        let mut session = Session::open(config).await?;
        let standing = Standing::of(&mut session, config).await?;
        *held(&self.caution) = standing.caution;
        Ok(Link { session, standing, mark: None })
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
