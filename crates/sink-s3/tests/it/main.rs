//! The sink for S3 on a server of its own, and on one that keeps to the letter of AWS: the suite of all sinks, and what can only go wrong with
//! this store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod answers;
mod aws;
mod containers;
mod fixture;
mod rejections;
