//! The sink for PostgreSQL on a separate server: the conformance suite of all sinks, and the faults specific to this
//! store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod altered;
mod conformance;
mod connections;
mod durability;
mod faults;
mod fixture;
mod kept_statements;
mod lookups;
mod partitioned;
mod poisoned;
mod pooled;
mod reading;
mod rows;
