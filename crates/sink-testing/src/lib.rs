//! The common part of sink tests: the conformance suite that every store must pass, tests with faults of connections
//! and servers, a store after real writers, events and batches, and a store in memory with fault injection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

pub mod conformance;
pub mod containers;
pub mod events;
pub mod faults;
pub mod memory;
pub mod odd_frames;
pub mod through_writer;

pub use memory::MemoryHandle;
