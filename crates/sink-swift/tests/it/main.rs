//! The sink for Swift on a real server: the conformance suite, and the faults that only this store has.
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
