//! An upstream: the writers that some of a gateway's sinks use. These sinks share the state of the writers, so a writer that fails
//! for one lane is ejected for all.
//!
//! A reload, DNS or etcd may change the set of writers at run time, without a new sink.

mod health;
mod server;
mod servers;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use metrics::Counter;

use super::etcd::EtcdConfig;
use super::token::BearerToken;
use net::http_client::Endpoint;

pub use health::ServerState;
use server::ServerKey;
pub use server::{RequestOutcome, WriterServer};
use servers::Servers;
pub(super) use servers::{Choice, Order, SinkUse};

/// The configuration of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// The upstream's name in the configuration.
    pub name: String,
    /// Its writers.
    pub writers: Writers,
    /// Whether each event is stored through each of the writers, which then have names; else through one of them.
    pub sends_to_all: bool,
    /// How batches are spread over the writers.
    pub spread: Spread,
    /// The token that authenticates the gateway to the writers.
    pub token: Option<BearerToken>,
    /// A PEM file with the trusted authorities. `None`: the machine's.
    pub ca: Option<PathBuf>,
    /// How long a writer may send heartbeats before its answer.
    pub response_timeout: Duration,
}

/// Where the writers of an upstream are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writers {
    /// A fixed list.
    Listed(Vec<Endpoint>),
    /// A fixed list with a name for each: a sink may use one of them only.
    Named(Vec<(String, Endpoint)>),
    /// One writer at each address to which DNS resolves the host.
    Dns(Endpoint),
    /// The writers that have registered in etcd.
    Etcd {
        /// The etcd and the prefix of their keys.
        etcd: EtcdConfig,
        /// Whether an upstream with a token or an authority may use `http://` URLs of other machines.
        allows_http: bool,
    },
}

impl Writers {
    /// The writers that the configuration itself names; with DNS and etcd they are not known here.
    fn keys(&self) -> Option<Vec<ServerKey>> {
        match self {
            Self::Listed(list) => Some(list.iter().map(|endpoint| (None, endpoint.clone(), None)).collect()),
            Self::Named(list) => {
                Some(list.iter().map(|(name, endpoint)| (Some(name.clone()), endpoint.clone(), None)).collect())
            }
            Self::Dns(_) | Self::Etcd { .. } => None,
        }
    }
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

#[derive(Debug)]
struct Shared {
    servers: Servers,
    lookups: Lookups,
}

/// Counters of look-ups in DNS or etcd.
#[derive(Debug, Default)]
pub struct Lookups {
    /// The answer named at least one writer.
    pub resolved: Counter,
    /// The answer named none, or there was no answer: the set of writers was kept.
    pub failed: Counter,
}

/// Upstreams are equal if their sinks can share connections. Their writers may differ: a running sink follows these.
impl PartialEq for Upstream {
    fn eq(&self, other: &Self) -> bool {
        let key = |upstream: &Self| {
            let UpstreamConfig { name, token, ca, response_timeout, .. } = &*upstream.config;
            (name.clone(), token.clone(), ca.clone(), *response_timeout)
        };
        key(self) == key(other)
    }
}

impl Eq for Upstream {}

impl Upstream {
    /// An upstream with a new state.
    #[must_use]
    pub fn new(config: UpstreamConfig) -> Self {
        let shared = Shared { servers: Servers::of(&config.name), lookups: Lookups::default() };
        let upstream = Self { config: Arc::new(config), shared: Arc::new(shared) };
        upstream.apply();
        upstream
    }

    /// The configuration.
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

    /// Applies the writers and the spread of this configuration. With DNS and etcd, the writers are kept until the next answer.
    pub fn apply(&self) {
        let UpstreamConfig { writers, spread, .. } = &*self.config;
        self.shared.servers.set_spread(*spread);
        if let Some(keys) = writers.keys() {
            self.shared.servers.replace(keys);
        }
    }

    /// Lets new sinks of `mode = "all"` reach their servers before [`Self::apply`]. Other sinks use servers by name, so none of them uses these.
    pub fn announce(&self) {
        if let (true, Some(keys)) = (self.config.sends_to_all, self.config.writers.keys()) {
            self.shared.servers.add(keys);
        }
    }

    /// Applies the addresses that DNS returned, at least one. Returns whether the set of writers has changed.
    pub fn resolve(&self, addresses: &BTreeSet<SocketAddr>) -> bool {
        let Writers::Dns(endpoint) = &self.config.writers else { return false };
        let keys = addresses.iter().map(|address| (None, endpoint.clone(), Some(*address)));
        self.shared.servers.replace(keys.collect())
    }

    /// Applies the URLs of the writers that are registered in etcd, at least one. Returns whether the set of writers has changed.
    pub fn discover(&self, urls: &[Endpoint]) -> bool {
        self.shared.servers.replace(urls.iter().map(|url| (None, url.clone(), None)).collect())
    }

    /// The counters of look-ups in DNS or etcd.
    #[must_use]
    pub fn lookups(&self) -> &Lookups {
        &self.shared.lookups
    }

    /// The current writers.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<WriterServer>> {
        self.shared.servers.all()
    }

    /// The writer that got the lane's last batch.
    #[must_use]
    pub fn server_of(&self, lane: &Lane) -> Option<Arc<WriterServer>> {
        self.shared.servers.user_of(lane)
    }

    pub(super) fn state(&self) -> &Servers {
        &self.shared.servers
    }
}
