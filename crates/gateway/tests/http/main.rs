//! The gateway over real sockets: every answer that it gives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod acks;
mod batches;
mod caller;
mod changes;
mod codings;
mod cors;
mod duplicates;
mod events;
mod fairness;
mod json_parsing;
mod pages;
mod probes;
mod schemas;
mod stand;
mod steps;
mod storable;
mod tls;
mod tokens;
mod trouble;
mod type_rules;
