//! NATS, whose package in the system is too old: built once with Go into `target/`, where the tests of sinks look for it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, has_program, run, target_directory};

/// The version changes only here.
const SERVER: &str = "github.com/nats-io/nats-server/v2@v2.14.5";

fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools").join("nats"))
}

/// The path of the program, if it was built.
pub(crate) fn program() -> Result<PathBuf> {
    Ok(folder()?.join("nats-server"))
}

/// Whether it is there, or can't be: no package of the system has a Go that is new enough, and where there is none the tests on NATS
/// are skipped.
pub(crate) fn is_there() -> bool {
    program().is_ok_and(|program| program.is_file()) || !has_program("go")
}

/// Builds it with Go.
pub(crate) fn build() -> Result<()> {
    let folder = folder()?;
    empty_directory(&folder)?;
    let mut go = Command::new("go");
    go.args(["install", SERVER]).env("GOBIN", &folder).env("CGO_ENABLED", "0");
    run(&mut go).context("NATS is built with Go")
}
