//! The sink for NATS on a separate server: the conformance suite of all sinks, and the faults specific to this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod faults;
mod fixture;
mod refusals;
mod streams;
mod torn;
