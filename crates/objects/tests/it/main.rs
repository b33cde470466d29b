//! The sinks for Swift and S3 on servers of their own: the suite of all sinks, and what can only go wrong with these stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod ahead;
mod answers;
mod apart;
mod aws;
mod conformance;
#[path = "../../../sink/tests/events/mod.rs"]
#[allow(dead_code, reason = "another test's events, of which this one takes what it needs")]
mod events;
mod faults;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
mod keystone;
mod lines;
#[path = "../../../sink/tests/postgres_server/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "another test's proxy, of which this one takes what it needs")]
mod proxy;
mod reads;
mod rejections;
mod stand;
mod stand_in;
#[path = "../../../sink/tests/swift_server/mod.rs"]
mod swift_server;
#[path = "../../../sink/tests/through_writer/mod.rs"]
mod through_writer;
mod through_writers;
