//! Commands of crate `bench`: it is built with the profile of the binary that it measures, and only when it is needed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::workspace::{cargo, run, target_directory};

/// Arguments that crate `bench` reads.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs a command of crate `bench`.
pub(crate) fn run_bench(command: &str, passed: &Passed) -> Result<()> {
    run(Command::new(bench_binary()?).arg(command).args(&passed.arguments))
}

/// The program, after it is built.
pub(crate) fn bench_binary() -> Result<PathBuf> {
    // Together with the server: alone, some dependencies would have other features and be built twice.
    run(cargo().args(["build", "--quiet", "--profile", "dist", "--package", "bench", "--package", "forebay"]))?;
    Ok(target_directory()?.join("dist").join("bench"))
}
