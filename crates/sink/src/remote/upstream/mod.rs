//! An upstream: the writers that some of a gateway's sinks use. These sinks share the state of the writers, so that a writer that fails
//! for one lane is ejected for all.
//!
//! The set of writers may change at run time, by a reload or by DNS, without a new sink.

mod health;
mod server;
mod servers;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use event::Lane;
use event::cells::Counter;

use super::config::DeliverToken;
use crate::http_client::Endpoint;

pub use server::{RequestOutcome, Server};
pub(super) use servers::Choice;
use servers::Servers;

/// What a configuration says of an upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The upstream's name in the configuration.
    pub name: String,
    /// Its writers.
    pub writers: Writers,
    /// Whether each event is stored through each of the writers, which have names then; else through one of them.
    pub sends_to_all: bool,
    /// How batches are spread over the writers.
    pub spread: Spread,
    /// By which the writers know their gateway.
    pub token: Option<DeliverToken>,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
}

/// Where the writers of an upstream are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writers {
    /// A fixed list.
    Listed(Vec<Endpoint>),
    /// The same with a name for each, so that a sink can use one of them alone.
    Named(Vec<(String, Endpoint)>),
    /// One writer at each address of the host, which DNS is asked for.
    Dns(Endpoint),
}

/// How batches are spread over writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// A lane sticks to one writer.
    #[default]
    Lane,
    /// Each batch goes to the faster of two writers that are picked at random.
    Batch,
}

/// An upstream with the state of its writers. Cheap to clone: the clones share that state.
#[derive(Clone, Debug)]
pub struct Upstream {
    config: Arc<UpstreamConfig>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    servers: Servers,
    lookups: Lookups,
}

/// How often DNS was asked for the writers.
#[derive(Debug, Default)]
pub struct Lookups {
    /// DNS gave at least one address.
    pub resolved: Counter,
    /// DNS gave none, or did not answer: the set of writers stayed as it was.
    pub failed: Counter,
}

/// Upstreams are equal if their sinks can share connections. Their writers may differ: a sink follows these while it runs.
impl PartialEq for Upstream {
    fn eq(&self, other: &Self) -> bool {
        let key = |upstream: &Self| {
            let UpstreamConfig { name, token, ca, .. } = &*upstream.config;
            (name.clone(), token.clone(), ca.clone())
        };
        key(self) == key(other)
    }
}

impl Eq for Upstream {}

impl Upstream {
    /// An upstream with a state of its own.
    #[must_use]
    pub fn new(config: UpstreamConfig) -> Self {
        let upstream = Self { config: Arc::new(config), shared: Arc::default() };
        upstream.apply();
        upstream
    }

    /// What the configuration says.
    #[must_use]
    pub fn config(&self) -> &UpstreamConfig {
        &self.config
    }

    /// Whether both share one state.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Shares the state of a running upstream from now on. The writers of this configuration are used after [`Self::apply`].
    pub fn join(&mut self, running: &Self) {
        self.shared = Arc::clone(&running.shared);
    }

    /// Puts the writers and the spread of this configuration in force. With DNS the writers stay as they are until the next answer.
    pub fn apply(&self) {
        let UpstreamConfig { writers, spread, .. } = &*self.config;
        self.shared.servers.set_spread(*spread);
        let keys: Vec<_> = match writers {
            Writers::Listed(list) => list.iter().map(|endpoint| (None, endpoint.clone(), None)).collect(),
            Writers::Named(list) => {
                list.iter().map(|(name, endpoint)| (Some(name.clone()), endpoint.clone(), None)).collect()
            }
            Writers::Dns(_) => return,
        };
        self.shared.servers.replace(keys);
    }

    /// Takes the addresses that DNS gave, at least one, and says whether the set of writers has changed.
    pub fn resolve(&self, addresses: &BTreeSet<SocketAddr>) -> bool {
        let Writers::Dns(endpoint) = &self.config.writers else { return false };
        let keys = addresses.iter().map(|address| (None, endpoint.clone(), Some(*address)));
        self.shared.servers.replace(keys.collect())
    }

    /// How often DNS was asked.
    #[must_use]
    pub fn lookups(&self) -> &Lookups {
        &self.shared.lookups
    }

    /// The writers that there are now.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.shared.servers.all()
    }

    /// The writer that got the lane's last batch.
    #[must_use]
    pub fn server_of(&self, lane: &Lane) -> Option<Arc<Server>> {
        self.shared.servers.user_of(lane)
    }

    pub(super) fn state(&self) -> &Servers {
        &self.shared.servers
    }
}
