//! The sink for Elasticsearch and OpenSearch on a separate OpenSearch server: the conformance suite of all sinks, and
//! the faults specific to this store. Behaviour that is rare in a real server is simulated by a small one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod data_streams;
mod documents;
mod faults;
mod fixture;
mod gate;
mod reading;
mod refusals;
mod rollover;
mod unclear;
