//! The sink for NATS on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod faults;
mod fixture;
mod refusals;
mod streams;
mod torn;
