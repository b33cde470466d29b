//! Redis: streams, lists, sets, hashes, strings, counters and channels of a server, of a master that sentinels monitor,
//! or of a cluster.
//!
//! A transactional store: one script applies a run of records and sets the lane's cursor, which is in a hash next to
//! the data. Each lane has a separate connection to each server that it writes to, opened by the first call, and at
//! most one script in flight.

mod address;
mod cluster;
mod config;
mod connecting;
mod deployment;
mod error;
mod examine;
mod execute;
mod fault;
mod invalid_url;
mod mapping;
mod mark;
mod preflight;
mod protocol;
mod script;
mod sentinel;
mod server;
mod session;
mod settings;
mod slot_cursors;
mod slots;
mod store;

pub use address::Address;
pub use config::{InvalidKey, KeyPattern, RedisConfig, Structure};
pub use deployment::{Deployment, Sentinel};
pub use invalid_url::InvalidRedisUrl;
pub use server::RedisServerUrl;
pub use settings::KIND;
pub use store::Redis;
