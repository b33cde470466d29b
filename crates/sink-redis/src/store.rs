//! The lanes of a sink, and the connections that they share.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use event::Lane;

use super::address::Address;
use super::cluster::{Map, Nodes};
use super::config::RedisConfig;
use super::connecting;
use super::deployment::Deployment;
use super::error::Failure;
use super::examine;
use super::execute::Execute;
use super::mark;
use super::protocol::{Answer, Command};
use super::script;
use super::session::{IDLE_MAX, Session};
use super::slot_cursors::Places;
use sink::close_signal::CloseSignal;
use sink::connection_pool::{ConnectionPool, Lent};
use sink::lane_states::LaneStates;
use sink::{Batch, Capabilities, Claim, Examination, Held, Mark, Reason, SinkError, Store, Takeover, WriteOutcome};

/// How long a replica may lag when it takes over, or a disk may lag, without the loss of an event: segments are kept
/// for this long.
const SETTLE: Duration = Duration::from_mins(1);

/// The store.
pub struct Redis {
    config: RedisConfig,
    states: LaneStates<LaneState>,
    /// Connections to the only server to write to; in a cluster each lane has its own.
    pool: ConnectionPool<Session>,
    /// The known state of the server or the cluster.
    map: Map,
    closed: CloseSignal,
}

/// A lane of a cluster.
#[derive(Debug, Default)]
struct LaneState {
    /// A connection for each node that was needed.
    sessions: HashMap<Address, Session>,
    /// The lane's position in each slot, if its keys are in several slots.
    places: Places,
}

/// The destination of one call's commands. A call that fails or is dropped closes its connection.
enum Route<'a> {
    Server(Lent<'a, Session>),
    Nodes(Nodes<'a>),
}

impl Execute for Route<'_> {
    async fn execute(&mut self, key: &str, command: Command) -> Result<Answer, Failure> {
        match self {
            Self::Server(lent) => lent.connection.call(command).await,
            Self::Nodes(nodes) => nodes.execute(key, command).await,
        }
    }
}

#[async_trait]
impl Store for Redis {
    fn capabilities(&self) -> Capabilities {
        Capabilities { settle: SETTLE, fenced: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.unless_closed(async {
            if let Deployment::Cluster(_) = &self.config.deployment {
                return self.map.connect(&self.config).await;
            }
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
            let mut sessions = HashMap::new();
            let mut route = self.route(&mut sessions).await?;
            let mark = mark::of(&mut route, &self.config).await?;
            self.give_back(route);
            Ok(Some(mark))
        })
        .await
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let (config, state) = (&self.config, self.states.of(lane));
            let LaneState { sessions, places } = &mut *state.lock().await;
            let mut route = self.route(sessions).await?;
            let held = if config.has_one_place() {
                script::read(&mut route, &config.key.own(), lane).await?
            } else {
                places.held(&mut route, config, lane).await?
            };
            self.give_back(route);
            Ok(Some(held))
        })
        .await
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        self.unless_closed(async {
            let (config, state) = (&self.config, self.states.of(lane));
            let LaneState { sessions, places } = &mut *state.lock().await;
            let mut route = self.route(sessions).await?;
            let held = if config.has_one_place() {
                script::claim(&mut route, &config.key.own(), lane, claim, takeover).await?
            } else {
                places.claim(&mut route, config, lane, (claim, takeover)).await?
            };
            self.give_back(route);
            Ok(Some(held))
        })
        .await
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        self.unless_closed(async {
            let (config, state) = (&self.config, self.states.of(batch.lane()));
            let LaneState { sessions, places } = &mut *state.lock().await;
            let mut route = self.route(sessions).await?;
            mark::check(&mut route, config, batch.mark()).await?;
            let outcome = if config.has_one_place() {
                let all: Vec<usize> = (0..batch.len()).collect();
                script::write(&mut route, config, &config.key.own(), batch, &all, &mut batch.floor()).await?
            } else {
                places.write(&mut route, config, batch).await?
            };
            self.give_back(route);
            Ok(outcome)
        })
        .await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.closed.close();
        for state in self.states.all() {
            state.lock().await.sessions.clear();
        }
        while self.pool.pop().is_some() {}
        Ok(())
    }

    fn warning(&self) -> Option<Reason> {
        self.map.warning().map(|warning| format!("Redis {}: {warning}", self.config.place()).into())
    }
}

impl Redis {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: RedisConfig) -> Self {
        Self {
            states: LaneStates::default(),
            pool: ConnectionPool::new(Some(config.connections_max), IDLE_MAX),
            map: Map::default(),
            closed: CloseSignal::default(),
            config,
        }
    }

    /// The route of a lane that has these connections in a cluster.
    async fn route<'a>(&'a self, sessions: &'a mut HashMap<Address, Session>) -> Result<Route<'a>, Failure> {
        if let Deployment::Cluster(_) = &self.config.deployment {
            return Ok(Route::Nodes(Nodes { config: &self.config, map: &self.map, sessions }));
        }
        Ok(Route::Server(self.take().await?))
    }

    fn give_back(&self, route: Route<'_>) {
        if let Route::Server(lent) = route {
            self.pool.give_back(lent);
        }
    }

    /// A connection to the server that a new one would reach.
    async fn take(&self) -> Result<Lent<'_, Session>, Failure> {
        let permit = self.pool.permit().await;
        while let Some(mut session) = self.pool.pop() {
            if connecting::is_current(&self.config, &mut session).await {
                return Ok(permit.lend(session));
            }
        }
        let (session, warning) = connecting::open(&self.config).await?;
        self.map.set_warning(warning);
        Ok(permit.lend(session))
    }

    /// Does `work`, unless the sink is closed during it.
    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, SinkError> {
        let done = self.closed.unless_closed(Failure::Closed, work).await;
        done.map_err(|failure| failure.into_sink_error(&self.config))
    }
}
