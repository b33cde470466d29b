//! The sink for Redis on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod clustered;
mod conformance;
#[path = "../../../sink/tests/events/mod.rs"]
mod events;
mod faults;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
#[path = "../../../sink/tests/postgres_server/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "another test's proxy, of which this one takes what it needs")]
mod proxy;
#[path = "../../../sink/tests/redis_server/clustered.rs"]
#[allow(dead_code, unreachable_pub, reason = "used by the tests of several crates, of which each takes what it needs")]
mod redis_clustered;
#[path = "../../../sink/tests/redis_server/mod.rs"]
mod redis_server;
#[path = "../../../sink/tests/redis_server/watched.rs"]
#[allow(dead_code, unreachable_pub, reason = "used by the tests of several crates, of which each takes what it needs")]
mod redis_watched;
mod stand;
mod structures;
#[path = "../../../sink/tests/through_writer/mod.rs"]
mod through_writer;
mod watched;
