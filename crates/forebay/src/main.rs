//! Forebay: takes JSON over HTTP, makes it durable, and stores it once in every database it is routed to.

mod check;
mod cli;
mod config;
#[expect(dead_code, reason = "used once the admin port is there")]
mod exposition;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::config::Environment;

fn main() -> io::Result<ExitCode> {
    let environment = Environment::of_process();
    match Cli::parse().into_command() {
        Command::Check(common) => check::run(&common, &environment).map(ExitCode::from),
        Command::Serve(_) | Command::Journal(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
