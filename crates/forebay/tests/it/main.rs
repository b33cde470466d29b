//! The binary as its users meet it: one process for each server and each command, real HTTP, a real disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod acks;
mod aggregates;
mod bench;
mod bombs;
mod cases;
mod check;
mod conditions;
#[cfg(all(
    feature = "elasticsearch",
    feature = "nats",
    feature = "postgres",
    feature = "redis",
    feature = "s3",
    feature = "swift"
))]
mod copies;
mod dead;
mod directory;
mod drain;
mod duckdb;
#[cfg(all(feature = "elasticsearch", feature = "postgres"))]
mod elasticsearch;
#[cfg(feature = "postgres")]
mod etcd;
mod hard_payloads;
mod health;
mod load;
mod load_refused;
mod load_resumed;
mod load_unread;
mod load_where;
mod logging;
mod lost;
#[cfg(feature = "postgres")]
mod marks;
#[cfg(feature = "postgres")]
mod memory_limit;
#[cfg(all(feature = "elasticsearch", feature = "postgres"))]
mod mended;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod nats;
#[cfg(all(feature = "postgres", feature = "s3", feature = "swift"))]
mod objects_back;
mod output;
mod parquet;
#[cfg(feature = "postgres")]
mod postgres;
mod proxies;
mod read_back;
#[cfg(all(feature = "postgres", feature = "redis"))]
mod redis;
mod reload;
mod roles;
mod schemas;
mod secrets;
mod serve;
mod stand;
mod stop;
mod stop_times;
mod support;
#[cfg(all(feature = "postgres", feature = "s3", feature = "swift"))]
mod swift;
mod tls;
mod tokens;
mod transforms;
mod trials;
mod trouble;
mod two_services;
mod type_rules;
#[cfg(feature = "postgres")]
mod upstreams;
#[cfg(feature = "webhook")]
mod webhook;
