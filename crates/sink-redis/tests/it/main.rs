//! The sink for Redis on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod clustered;
mod conformance;
mod faults;
mod fixture;
mod sentinels;
mod structures;
