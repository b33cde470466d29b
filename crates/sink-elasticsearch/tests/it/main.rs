//! The sink for Elasticsearch and OpenSearch on an OpenSearch server of its own: the suite of all sinks, and what can only go wrong with
//! this store. What a real server does too seldom is done by a small one of the tests' own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod documents;
#[path = "../../../sink/tests/events/mod.rs"]
mod events;
mod faults;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
mod gate;
#[path = "../../../sink/tests/opensearch_server/mod.rs"]
mod opensearch_server;
#[path = "../../../sink/tests/postgres_server/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "another test's proxy, of which this one takes what it needs")]
mod proxy;
mod reading;
mod refusals;
mod rolled;
mod stand;
mod stand_in;
#[path = "../../../sink/tests/through_writer/mod.rs"]
mod through_writer;
