//! The binary as its users meet it: one process for each server and each command, real HTTP, a real disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod acks;
mod aggregates;
mod bench;
mod bombs;
mod cases;
mod check;
mod conditions;
mod dead;
mod directory;
mod load;
mod load_where;
mod output;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
#[path = "../../../sink/tests/postgres_server/mod.rs"]
mod postgres_server;
mod read_back;
mod reload;
mod schemas;
mod secrets;
mod serve;
mod stand;
mod stop;
mod support;
mod tls;
mod tokens;
mod transforms;
mod trials;
mod type_rules;
