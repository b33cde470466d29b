//! The sink for Elasticsearch and OpenSearch on an OpenSearch server of its own: the suite of all sinks, and what can only go wrong with
//! this store. What a real server does too seldom is done by a small one of the tests' own.
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
