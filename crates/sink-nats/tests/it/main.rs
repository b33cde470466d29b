//! The sink for NATS on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod faults;
mod refusals;
mod stand;
mod streams;
mod torn;
