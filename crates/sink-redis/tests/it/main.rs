//! The sink for Redis on a separate server: the conformance suite of all sinks, and the faults specific to this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod clustered;
mod conformance;
mod faults;
mod fixture;
mod sentinels;
mod structures;
