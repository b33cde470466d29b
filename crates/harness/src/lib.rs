//! Shared by campaigns and benchmarks: processes of Forebay that are observed from outside, clients, loads, stores and tables of figures.
//! It isn't shipped.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tools for the terminal: printing is their output")]

pub mod ab;
pub mod bus_worker;
pub mod clients;
pub mod http;
pub mod latency;
pub mod metrics;
pub mod open_loop;
pub mod priority;
pub mod report;
pub mod server;
pub mod slow_proxy;
pub mod store;
pub mod two_services;
pub mod wait;
pub mod workspace;
pub mod wrk;
