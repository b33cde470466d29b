//! The lanes of a sink, and the connections that they share.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex as BlockingMutex, MutexGuard, PoisonError};

use event::Lane;
use futures_util::future::{Either, select};
use tokio::sync::watch;

use super::address::Address;
use super::cluster::{Map, Nodes};
use super::config::RedisConfig;
use super::connecting;
use super::deployment::Deployment;
use super::error::Failure;
use super::mark;
use super::preflight::Durability;
use super::script;
use super::session::{IDLE_MAX, Session};
use super::slot_cursors::Places;
use sink::connection_pool::{ConnectionPool, Lent};
use sink::lane_states::LaneStates;
use sink::{Batch, Claim, Held, Mark, Takeover, WriteOutcome};

/// The lanes that have called.
pub(super) struct LaneConnections {
    states: LaneStates<LaneState>,
    /// Connections to the one server that is written to; in a cluster each lane has its own.
    pool: ConnectionPool<Session>,
    /// The server as it was last looked at.
    durability: BlockingMutex<Option<Durability>>,
    /// The cluster, if it is one.
    map: Map,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

/// A lane of a cluster.
#[derive(Debug, Default)]
struct LaneState {
    /// In a cluster a connection for each node that was needed.
    sessions: HashMap<Address, Session>,
    /// How far the lane is there, where its keys are in several slots.
    places: Places,
}

impl LaneState {
    async fn held(&mut self, config: &RedisConfig, nodes: (&Map, &[Address]), lane: &Lane) -> Result<Held, Failure> {
        let Self { sessions, places } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        if !config.has_one_place() {
            return places.held(&mut nodes, config, lane).await;
        }
        Ok(held_of(script::read(&mut nodes, &config.key.own(), lane).await?))
    }

    async fn claim(
        &mut self,
        config: &RedisConfig,
        nodes: (&Map, &[Address]),
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        let Self { sessions, places } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        if !config.has_one_place() {
            return places.claim(&mut nodes, config, lane, (claim, takeover)).await;
        }
        Ok(held_of(script::claim(&mut nodes, &config.key.own(), lane, claim, takeover).await?))
    }

    async fn write(
        &mut self,
        config: &RedisConfig,
        nodes: (&Map, &[Address]),
        batch: &Batch,
    ) -> Result<WriteOutcome, Failure> {
        let Self { sessions, places } = self;
        let mut nodes = Nodes { config, map: nodes.0, more: nodes.1, sessions };
        mark::check(&mut nodes, config, batch.mark()).await?;
        if config.has_one_place() {
            script::write(&mut nodes, config, &config.key.own(), batch, &all(batch), &mut batch.floor()).await
        } else {
            places.write(&mut nodes, config, batch).await
        }
    }
}

fn held_of((position, claim): (u64, Option<Claim>)) -> Held {
    Held::new(position, claim)
}

fn all(batch: &Batch) -> Vec<usize> {
    (0..batch.len()).collect()
}

impl LaneConnections {
    pub(super) fn new(config: &RedisConfig) -> Self {
        Self {
            states: LaneStates::default(),
            pool: ConnectionPool::new(Some(config.connections_max), IDLE_MAX),
            durability: BlockingMutex::default(),
            map: Map::default(),
            closed: watch::Sender::new(0),
        }
    }
}

fn lock<T>(mutex: &BlockingMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneConnections {
    pub(super) async fn connect(&self, config: &RedisConfig) -> Result<(), Failure> {
        self.unless_closed(async {
            if let Deployment::Cluster(more) = &config.deployment {
                return self.map.connect(config, more).await;
            }
            self.pool.give_back(self.take(config).await?);
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
            let mut lent = self.take(config).await?;
            let mark = mark::of(&mut lent.connection, config).await?;
            self.pool.give_back(lent);
            Ok(mark)
        })
        .await
    }

    pub(super) async fn held(&self, config: &RedisConfig, lane: &Lane) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            if let Deployment::Cluster(more) = &config.deployment {
                return state.held(config, (&self.map, more), lane).await;
            }
            let mut lent = self.take(config).await?;
            let found = script::read(&mut lent.connection, &config.key.own(), lane).await?;
            self.pool.give_back(lent);
            Ok(held_of(found))
        })
        .await
    }

    pub(super) async fn claim(
        &self,
        config: &RedisConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        self.unless_closed(async {
            let state = self.states.of(lane);
            let mut state = state.lock().await;
            if let Deployment::Cluster(more) = &config.deployment {
                return state.claim(config, (&self.map, more), lane, (claim, takeover)).await;
            }
            let mut lent = self.take(config).await?;
            let found = script::claim(&mut lent.connection, &config.key.own(), lane, claim, takeover).await?;
            self.pool.give_back(lent);
            Ok(held_of(found))
        })
        .await
    }

    pub(super) async fn write(&self, config: &RedisConfig, batch: &Batch) -> Result<WriteOutcome, Failure> {
        self.unless_closed(async {
            let state = self.states.of(batch.lane());
            let mut state = state.lock().await;
            if let Deployment::Cluster(more) = &config.deployment {
                return state.write(config, (&self.map, more), batch).await;
            }
            let mut lent = self.take(config).await?;
            let (own, session) = (config.key.own(), &mut lent.connection);
            mark::check(session, config, batch.mark()).await?;
            let report = script::write(session, config, &own, batch, &all(batch), &mut batch.floor()).await?;
            self.pool.give_back(lent);
            Ok(report)
        })
        .await
    }

    /// Ends the calls in flight and closes all connections.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        for state in self.states.all() {
            state.lock().await.sessions.clear();
        }
        while self.pool.pop().is_some() {}
    }

    /// What the server may lose, as it was last looked at.
    pub(super) fn warning(&self) -> Option<String> {
        let of_server = lock(&self.durability).as_ref().and_then(|durability| durability.warning.clone());
        of_server.or_else(|| self.map.warning())
    }

    /// A connection to where one that is made now would lead.
    async fn take(&self, config: &RedisConfig) -> Result<Lent<'_, Session>, Failure> {
        let permit = self.pool.permit().await;
        while let Some(mut session) = self.pool.pop() {
            if connecting::is_current(config, &mut session).await {
                return Ok(permit.lend(session));
            }
        }
        let (session, durability) = connecting::open(config).await?;
        *lock(&self.durability) = Some(durability);
        Ok(permit.lend(session))
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
