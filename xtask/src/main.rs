//! The tooling of the repository: what CI runs, the project's own rules, benchmarks against reference loops, and
//! campaigns that take hours where tests take seconds. It isn't shipped.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal: printing is its output")]

mod ab;
mod bench;
mod bench_report;
mod campaign;
mod ci;
mod cores;
mod deployments;
mod dist;
mod docker;
mod duckdb;
mod http;
mod image;
mod kubernetes_schema;
mod lab;
mod libraries;
mod metrics;
mod nats;
mod open_loop;
mod opensearch;
mod pip_package;
mod priority;
mod random;
mod reference;
mod scale;
mod schema_suite;
mod server;
mod services;
mod slow_proxy;
mod static_build;
mod store;
mod test;
mod tidy;
mod two_services;
mod workspace;
mod wrk;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Forebay's tooling.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that CI checks: format, lints, tidy, licences, documentation, tests, short campaigns.
    Ci,
    /// All tests and the short campaigns.
    Test,
    /// Checks the files in `deploy/` with the programs that read them, and starts nothing.
    Deployments,
    /// The project's own rules: crate edges, bans, file length, links.
    Tidy(tidy::Arguments),
    /// Installs the programs that benchmarks and campaigns use, with apt.
    Services(services::Arguments),
    /// Builds an archive and a Debian package with the static binary, in target/dist.
    Dist(dist::Arguments),
    /// The loops that benchmarks are held against.
    Reference(reference::Arguments),
    /// Measures the server against its bars and the reference loops.
    Bench(bench::Arguments),
    /// Looks for lost or doubled events over many seeded failures.
    Campaign(campaign::Arguments),
    /// Measures many gateways and writers: load balancers, containers, cut networks, and the tables of the articles.
    Scale(scale::Arguments),
    /// Builds the container image from a binary of this machine.
    Image(image::Arguments),
    /// Two gateways, three writers, PostgreSQL and HAProxy on this machine, to try things out with.
    Lab(lab::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Ci => ci::run_ci(),
        Command::Test => test::run_tests(),
        Command::Deployments => deployments::check(),
        Command::Tidy(arguments) => tidy::run(&arguments),
        Command::Services(arguments) => services::install(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
        Command::Reference(arguments) => reference::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Campaign(arguments) => campaign::run(&arguments),
        Command::Scale(arguments) => scale::run(&arguments),
        Command::Image(arguments) => image::run_command(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
