//! The sink for NATS on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
#[path = "../../../sink/tests/events/mod.rs"]
mod events;
mod faults;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
#[path = "../../../sink/tests/nats_server/mod.rs"]
mod nats_server;
#[path = "../../../sink/tests/postgres_server/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "another test's proxy, of which this one takes what it needs")]
mod proxy;
mod refusals;
mod stand;
mod streams;
#[path = "../../../sink/tests/through_writer/mod.rs"]
mod through_writer;
mod torn;
