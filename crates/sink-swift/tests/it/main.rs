//! The sink for Swift on a server of its own: the suite of all sinks, and what can only go wrong with this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod answers;
mod attachments;
mod containers;
mod faults;
mod fixture;
mod keystone;
mod large;
mod reads;
mod rejections;
