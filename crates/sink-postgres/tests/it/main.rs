//! The sink for PostgreSQL on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod altered;
mod conformance;
mod connections;
mod divided;
mod durability;
mod faults;
mod fixture;
mod poisoned;
mod pooled;
mod reading;
mod rows;
