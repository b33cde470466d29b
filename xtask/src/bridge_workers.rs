//! The workers of `examples/bridge`: the Go service is built into `target/`, and the Python one needs a package of PyPI.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::pip_package::PipPackage;
use crate::workspace::{copy, empty_directory, has_program, root, run, target_directory};

/// The client of the Python worker. Its version is the one of the example.
pub(crate) const CLIENT: PipPackage = PipPackage {
    name: "nats-py",
    requirement: include_str!("../../examples/bridge/requirements.txt").trim_ascii(),
    options: &["--no-deps"],
};

fn examples() -> Result<PathBuf> {
    Ok(root()?.join("examples").join("bridge"))
}

/// A folder with a copy of the Go worker: its build writes `go.sum`.
fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools").join("bridge"))
}

/// Whether the Go worker was built from the example as it is now.
fn is_built() -> Result<bool> {
    let is_same = |file: &str| -> Result<bool> {
        let read = |folder: PathBuf| std::fs::read(folder.join(file)).unwrap_or_default();
        Ok(read(examples()?) == read(folder()?))
    };
    Ok(folder()?.join("worker").is_file() && is_same("worker.go")?)
}

/// Whether both can run, or can't be prepared: without Go the tests on them are skipped.
pub(crate) fn are_there() -> bool {
    !has_program("go") || (is_built().unwrap_or(false) && CLIENT.is_there())
}

/// Builds the Go worker, unless it is built, and fetches the package of the other.
pub(crate) fn build() -> Result<()> {
    CLIENT.fetch()?;
    if is_built()? {
        return Ok(());
    }
    let folder = folder()?;
    empty_directory(&folder)?;
    for file in ["worker.go", "go.mod"] {
        copy(&examples()?.join(file), &folder.join(file))?;
    }
    let mut go = Command::new("go");
    go.arg("-C").arg(&folder).args(["build", "-mod=mod", "-o", "worker", "."]).env("CGO_ENABLED", "0");
    run(&mut go).context("the worker of examples/bridge is built with Go")
}

/// The commands that run the workers for the NATS server at this URL, with their names.
pub(crate) fn commands(url: &str) -> Result<[(&'static str, Command); 2]> {
    let go = Command::new(folder()?.join("worker"));
    let mut python = Command::new("python3");
    python.arg(examples()?.join("worker.py")).env("PYTHONPATH", CLIENT.folder()?);
    let mut commands = [("worker-go", go), ("worker-python", python)];
    for (_, command) in &mut commands {
        command.env("NATS_URL", url);
    }
    Ok(commands)
}
