//! The tooling of the repository: what CI runs, the project's own rules, and campaigns that take hours where tests take seconds. It isn't
//! shipped. The public modules are those that the benchmarks of crate `bench` use too.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal: printing is its output")]

pub mod ab;
mod benchmarks;
mod campaign;
mod ci;
mod cli;
mod deployments;
mod dist;
mod docker;
mod duckdb;
mod fuzz;
pub mod http;
mod image;
mod kubernetes_schema;
mod lab;
pub mod latency;
mod libraries;
pub mod metrics;
mod nats;
pub mod open_loop;
mod opensearch;
mod pip_package;
pub mod priority;
pub mod report;
mod scale;
mod schema_suite;
pub mod server;
mod services;
mod shared_servers;
mod slow_proxy;
mod static_build;
mod steps;
pub mod store;
mod test;
mod test_programs;
mod tidy;
pub mod two_services;
pub mod workspace;
pub mod wrk;

pub use campaign::any_seed;
pub use cli::main;
