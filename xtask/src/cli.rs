//! The commands of `cargo xtask`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::benchmarks::{Passed, run_bench};
use crate::tidy::{lines, messages};
use crate::{campaign, ci, console, deployments, dist, docs, fuzz, image, lab, scale, senders, services, test, tidy};

/// Forebay's tooling.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that CI checks: format, lints, tidy, licences, documentation, tests, short campaigns.
    Ci,
    /// All tests and the short campaigns.
    Test(test::Arguments),
    /// Checks the files in `deploy/` with the programs that read them, and starts nothing.
    Deployments,
    /// One step of `test`, in a separate process.
    #[command(hide = true)]
    Step { name: String },
    /// The project's own rules: crate edges, bans, file length, links, plain words.
    Tidy,
    /// Lists the program's messages, help lines and descriptions of metrics, to read through.
    Messages,
    /// Counts production lines, of each crate and in all.
    Lines(lines::Arguments),
    /// Installs the programs that benchmarks and campaigns use, with apt.
    Services(services::Arguments),
    /// Builds the documentation as a site in target/book, and runs its commands with --all.
    Docs(docs::Arguments),
    /// Builds an archive and a Debian package with the static binary, in target/packages.
    Dist(dist::Arguments),
    /// The loops that benchmarks are compared with.
    Reference(Passed),
    /// Measures the server against its bars and the reference loops.
    Bench(Passed),
    /// Mutates real inputs for some minutes: request heads, segments, expressions, schemas, steps.
    Fuzz(fuzz::Arguments),
    /// Looks for lost or doubled events over many seeded failures.
    Campaign(campaign::Arguments),
    /// Measures many gateways, writers and users: load balancers, containers, cut networks, and the tables of the articles.
    Scale(scale::Arguments),
    /// Unchanged senders of others, with kills of Forebay: each acknowledged event is stored once.
    Senders(senders::Arguments),
    /// The console in Chromium, on a running system: questions, actions, stories, pages, hostile input, speed, a fleet.
    Console(console::Arguments),
    /// Builds the container image from a binary of this machine.
    Image(image::Arguments),
    /// Two gateways, three writers, PostgreSQL and HAProxy on this machine, to try things out with.
    Lab(lab::Arguments),
}

/// Runs the command of the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Task::Ci => ci::run_ci(),
        Task::Test(arguments) => test::run_tests(&arguments),
        Task::Step { name } => test::run_step(&name),
        Task::Deployments => deployments::check(),
        Task::Tidy => tidy::check(),
        Task::Messages => messages::print(),
        Task::Lines(arguments) => lines::run(&arguments),
        Task::Services(arguments) => services::install(&arguments),
        Task::Docs(arguments) => docs::run(&arguments),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Reference(passed) => run_bench("reference", &passed),
        Task::Bench(passed) => run_bench("bench", &passed),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Campaign(arguments) => campaign::run(&arguments),
        Task::Scale(arguments) => scale::run(&arguments),
        Task::Senders(arguments) => senders::run(&arguments),
        Task::Console(arguments) => console::run(&arguments),
        Task::Image(arguments) => image::run_command(&arguments),
        Task::Lab(arguments) => lab::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn pages_name_commands_that_exist() {
        let unknown = tidy::unknown_xtask_commands(&Arguments::command()).unwrap();
        assert!(unknown.is_empty(), "{unknown:#?}");
    }
}
