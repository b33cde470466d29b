//! The sink of a gateway that stores through writers: each call is a request to a writer, which makes the same call on its own sink.
//!
//! The store's cursor still decides, and the lane still owns its progress: a writer keeps none. A lane sticks to one writer and
//! uses another one if that one doesn't answer.

mod binding;
mod caller;
mod config;
mod connecting;
mod etcd;
mod exchange;
mod prober;
mod remote_objects;
mod store;
mod token;
mod upstream;

pub use config::{RemoteConfig, RemoteObjectsConfig};
pub use etcd::{EtcdAccount, EtcdConfig};
pub use prober::probe;
pub use remote_objects::RemoteObjects;
pub use store::Remote;
pub use token::BearerToken;
pub use upstream::{Lookups, RequestOutcome, ServerState, Spread, Upstream, UpstreamConfig, WriterServer, Writers};
