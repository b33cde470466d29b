//! The connections of a sink's lanes: one each, made when the lane first calls and again after whatever failed.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::address::Address;
use super::cluster::{Map, Nodes};
use super::config::RedisConfig;
use super::connecting;
use super::deployment::Deployment;
use super::failure::Failure;
use super::mark;
use super::places::Places;
use super::script;
use super::session::Session;
use super::standing::Standing;
use crate::{Batch, Claim, Held, Mark, Report, Takeover};

/// The lanes that have called.
pub(super) struct Lanes {
    seats: BlockingMutex<HashMap<Lane, Arc<Mutex<Seat>>>>,
    /// A connection that was made before it was known for which lane.
    spare: BlockingMutex<Option<Session>>,
    /// The server as it was last looked at.
    standing: BlockingMutex<Option<Standing>>,
    /// The cluster, if it is one.
    map: Map,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A lane's place.
#[derive(Debug, Default)]
struct Seat {
    session: Option<Session>,
    /// Up to where the lane was seen to be stored: a server that has less is another one, or has lost something.
    stored: u64,
    /// In a cluster a connection for each node that was needed.
    sessions: HashMap<Address, Session>,
    /// How far the lane is there, where its keys are in several slots.
    places: Places,
}

impl Seat {
    async fn held(&mut self, config: &RedisConfig, nodes: (&Map, &[Address]), lane: &Lane) -> Result<Held, Failure> {
        let Self { stored, sessions, places, .. } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        if !config.has_one_place() {
            return places.held(&mut nodes, config, lane).await;
        }
        note(stored, script::read(&mut nodes, &config.key.own(), lane).await?)
    }

    async fn claim(
        &mut self,
        config: &RedisConfig,
        nodes: (&Map, &[Address]),
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        let Self { stored, sessions, places, .. } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        if !config.has_one_place() {
            return places.claim(&mut nodes, config, lane, (claim, takeover)).await;
        }
        note(stored, script::claim(&mut nodes, &config.key.own(), lane, claim, takeover).await?)
    }

    async fn write(
        &mut self,
        config: &RedisConfig,
        nodes: (&Map, &[Address]),
        batch: &Batch,
    ) -> Result<Report, Failure> {
        let Self { stored, sessions, places, .. } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        mark::check(&mut nodes, config, batch.mark()).await?;
        if config.has_one_place() {
            script::write(&mut nodes, config, &config.key.own(), batch, &all(batch), stored).await
        } else {
            places.write(&mut nodes, config, batch).await
        }
    }
}

/// What was found of a lane in its one place is what it was seen to have stored.
fn note(stored: &mut u64, (position, claim): (u64, Option<Claim>)) -> Result<Held, Failure> {
    *stored = position;
    Ok(Held::new(position, claim))
}

fn all(batch: &Batch) -> Vec<usize> {
    (0..batch.len()).collect()
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            seats: BlockingMutex::default(),
            spare: BlockingMutex::default(),
            standing: BlockingMutex::default(),
            map: Map::default(),
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
            if let Deployment::Cluster(more) = &config.deployment {
                return self.map.connect(config, more).await;
            }
            let spare = held(&self.spare).take();
            let session = self.find(config, spare).await?;
            *held(&self.spare) = Some(session);
            Ok(())
        })
        .await
    }

    pub(super) async fn mark(&self, config: &RedisConfig) -> Result<Mark, Failure> {
        self.unless_closed(async {
            if let Deployment::Cluster(more) = &config.deployment {
                let mut sessions = HashMap::new();
                let mut nodes = Nodes { config, map: &self.map, more, sessions: &mut sessions };
                return mark::of(&mut nodes, config).await;
            }
            let spare = held(&self.spare).take();
            let mut session = self.find(config, spare).await?;
            let mark = mark::of(&mut session, config).await?;
            *held(&self.spare) = Some(session);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &RedisConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            self.look(config, &mut seat, lane).await
        })
        .await
    }

    /// The same for another lane than the caller's own: what this one was seen to have stored stays as it is.
    pub(super) async fn peek(&self, config: &RedisConfig, lane: &Lane) -> Result<Held, Failure> {
        let mut seat = Seat::default();
        let found = self.unless_closed(self.look(config, &mut seat, lane)).await;
        if let Some(session) = seat.session {
            held(&self.spare).get_or_insert(session);
        }
        found
    }

    async fn look(&self, config: &RedisConfig, seat: &mut Seat, lane: &Lane) -> Result<Held, Failure> {
        if let Deployment::Cluster(more) = &config.deployment {
            return seat.held(config, (&self.map, more), lane).await;
        }
        let mut session = self.take(config, seat).await?;
        let found = script::read(&mut session, &config.key.own(), lane).await?;
        seat.session = Some(session);
        note(&mut seat.stored, found)
    }

    pub(super) async fn claim(
        &self,
        config: &RedisConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let seat = self.seat(lane);
            let mut seat = seat.lock().await;
            if let Deployment::Cluster(more) = &config.deployment {
                return seat.claim(config, (&self.map, more), lane, (claim, takeover)).await;
            }
            let mut session = self.take(config, &mut seat).await?;
            let found = script::claim(&mut session, &config.key.own(), lane, claim, takeover).await?;
            seat.session = Some(session);
            note(&mut seat.stored, found)
        })
        .await
    }

    pub(super) async fn write(&self, config: &RedisConfig, batch: &Batch) -> Result<Report, Failure> {
        self.unless_closed(async {
            let seat = self.seat(batch.lane());
            let mut seat = seat.lock().await;
            if let Deployment::Cluster(more) = &config.deployment {
                return seat.write(config, (&self.map, more), batch).await;
            }
            // Taken out: a call that fails or is dropped on the way leaves no connection in an unknown state.
            let mut session = self.take(config, &mut seat).await?;
            mark::check(&mut session, config, batch.mark()).await?;
            let own = config.key.own();
            let report = script::write(&mut session, config, &own, batch, &all(batch), &mut seat.stored).await?;
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
            let mut seat = seat.lock().await;
            drop(seat.session.take());
            seat.sessions.clear();
        }
    }

    /// What the server may lose, as it was last looked at.
    pub(super) fn caution(&self) -> Option<String> {
        let of_server = held(&self.standing).as_ref().and_then(|standing| standing.caution.clone());
        of_server.or_else(|| self.map.caution())
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
