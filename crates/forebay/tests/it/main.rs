//! The binary as its users meet it: one process for each server and each command, real HTTP, a real disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod acks;
mod aggregates;
mod bench;
mod bombs;
mod cases;
mod check;
mod conditions;
mod copies;
mod dead;
mod directory;
mod drain;
mod duckdb;
mod elasticsearch;
mod etcd;
mod etcd_server;
#[path = "../../../sink/tests/free_port/mod.rs"]
mod free_port;
mod hard_payloads;
mod health;
mod load;
mod load_refused;
mod load_resumed;
mod load_unread;
mod load_where;
mod logging;
mod lost;
mod marks;
mod memory_limit;
mod mended;
mod nats;
#[path = "../../../sink/tests/nats_server/mod.rs"]
mod nats_server;
mod objects_back;
#[path = "../../../sink/tests/opensearch_server/mod.rs"]
mod opensearch_server;
mod output;
mod parquet;
mod postgres;
#[path = "../../../sink/tests/postgres_server/mod.rs"]
mod postgres_server;
mod proxies;
mod read_back;
mod redis;
#[path = "../../../sink/tests/redis_server/clustered.rs"]
#[allow(dead_code, unreachable_pub, reason = "used by the tests of several crates, of which each takes what it needs")]
mod redis_clustered;
#[path = "../../../sink/tests/redis_server/mod.rs"]
mod redis_server;
#[path = "../../../sink/tests/redis_server/watched.rs"]
#[allow(dead_code, unreachable_pub, reason = "used by the tests of several crates, of which each takes what it needs")]
mod redis_watched;
mod reload;
mod roles;
mod schemas;
mod secrets;
mod serve;
mod stand;
mod stop;
mod stop_times;
mod support;
mod swift;
#[path = "../../../sink/tests/swift_server/mod.rs"]
mod swift_server;
mod tls;
mod tokens;
mod transforms;
mod trials;
mod trouble;
mod two_services;
mod type_rules;
mod upstreams;
mod webhook;
