//! Appends to the event log, and what becomes of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod dedup;
mod shard;
