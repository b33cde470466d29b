//! The tooling of the repository: what CI runs, the project's own rules, and campaigns that take hours where tests take seconds. It isn't
//! shipped.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal: printing is its output")]

mod benchmarks;
mod bridge_workers;
mod campaign;
mod chromium;
mod ci;
mod cli;
mod console;
mod deployments;
mod dist;
mod docker;
mod docs;
mod duckdb;
mod fuzz;
mod image;
mod kubernetes_schema;
mod lab;
mod libraries;
mod machine;
mod nats;
mod npm;
mod opensearch;
mod pip_package;
mod scale;
mod schema_suite;
mod senders;
mod services;
mod shared_servers;
mod spelling;
mod static_build;
mod steps;
mod test;
mod test_programs;
mod tidy;

// Shared with the benchmarks of crate `bench`.
use harness::{
    ab, bus_worker, clients, http, latency, metrics, priority, report, server, slow_proxy, store, two_services, wait,
    workspace, wrk,
};

pub use cli::main;
