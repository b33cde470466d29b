//! Directories as stores: the conformance suite of all sinks, and uploads through writers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod conformance;
mod through_writers;
