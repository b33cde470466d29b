//! The gateway over real sockets: every answer that it gives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod acks;
mod batches;
mod bridge;
mod changes;
mod client_ip;
mod codings;
mod cors;
mod duplicates;
mod early_responses;
mod events;
mod fairness;
mod fixture;
mod intakes;
mod json_parsing;
mod kept_alive;
mod pages;
mod probes;
mod protocols;
mod quarantine;
mod reads;
mod refusals;
mod schemas;
mod senders;
mod steps;
mod storable;
mod tls;
mod tokens;
mod trouble;
mod type_rules;
