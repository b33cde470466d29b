//! Servers of stores and proxies for tests, benchmarks and campaigns, each on free ports and in a
//! separate folder. They end with the test, however that ends. It needs nothing but std and the crates `random` and `tracing`, and isn't shipped.
#![allow(missing_docs, reason = "names of servers and of what they answer say it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by it, and says why it is skipped"
)]

pub mod etcd;
pub mod fuzz;
pub mod generated;
pub mod logged;
pub mod mock_bulk_server;
pub mod mock_server;
pub mod nats;
pub mod opensearch;
pub mod pages;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod records;
pub mod redis;
pub mod skipped;
pub mod swift;
pub mod tools;
pub mod wait;
