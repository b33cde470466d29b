//! The sink for PostgreSQL on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod altered;
mod conformance;
mod connections;
mod divided;
#[path = "../../../sink/tests/events/mod.rs"]
mod events;
mod faults;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
mod poisoned;
mod pooled;
#[path = "../../../sink/tests/postgres_server/mod.rs"]
mod postgres_server;
mod reading;
mod rows;
mod stand;
#[path = "../../../sink/tests/through_writer/mod.rs"]
mod through_writer;
