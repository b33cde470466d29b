//! The sink for S3 on a real server, and on one that is as strict as AWS: the conformance suite, and the faults that only
//! this store has.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod answers;
mod aws;
mod containers;
mod fixture;
mod rejections;
