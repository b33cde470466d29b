//! The sinks for Swift and S3 on servers of their own: the suite of all sinks, and what can only go wrong with these stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod answers;
mod attachments;
mod aws;
mod conformance;
mod faults;
mod fixture;
mod keystone;
mod large;
mod lines;
mod reads;
mod rejections;
mod through_writers;
