//! Senders from PyPI, in a virtual environment.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::installed::{ensure, folder, source, text};
use super::sender::{ALL, MOST, Sender, Start, Started};
use super::settings::{Extra, Place};
use crate::workspace::run;

/// The senders of the package index.
pub(super) const SENDERS: &[Sender] = &[
    sender("elasticsearch-ids", Place::Root("es"), ALL),
    sender("elasticsearch-no-ids", Place::Path("/es"), ALL),
    sender("opensearch-py", Place::Root("es"), ALL),
    sender("opentelemetry-python", Place::Root("otlp"), ALL),
    sender("segment-python", Place::Root("segment"), ALL),
    sender("rudder-python", Place::Path("/segment"), ALL),
    sender("splunk-handler", Place::Root("hec"), ALL),
    sender("splunk-hec-handler", Place::Root("hec"), MOST),
    sender("python-logging-loki", Place::Root("loki"), MOST),
    sender("cloudevents-python-binary", Place::Path("/cloudevents"), ALL),
    sender("cloudevents-python-structured", Place::Path("/cloudevents"), ALL),
];

/// Programs that no registry has: their first calls, and a bulk loop as theirs.
pub(super) const FIRST_CALLS: &[Sender] =
    &[first_calls("filebeat-calls"), first_calls("logstash-calls"), first_calls("vector-calls")];

const fn sender(name: &'static str, place: Place, least: usize) -> Sender {
    Sender { name, place, extra: Extra::Nothing, least, start }
}

const fn first_calls(name: &'static str) -> Sender {
    let start = |start: &Start<'_>| Ok(start.program(script("python3".as_ref(), "first_calls.py")?));
    Sender { name, place: Place::Root("es"), extra: Extra::Nothing, least: ALL, start }
}

fn start(start: &Start<'_>) -> Result<Started> {
    Ok(start.program(script(&interpreter()?, "senders.py")?))
}

/// The interpreter with the packages.
pub(super) fn interpreter() -> Result<std::path::PathBuf> {
    Ok(folder("python")?.join("bin").join("python"))
}

/// A script of `xtask/senders`.
pub(super) fn script(interpreter: &Path, name: &str) -> Result<Command> {
    let mut python = Command::new(interpreter);
    python.arg("-u").arg(source(name)?);
    Ok(python)
}

/// Installs the packages.
pub(super) fn install() -> Result<()> {
    ensure("python", &text("requirements.txt")?, |folder| install_requirements(folder, "requirements.txt")).map(drop)
}

/// Creates a virtual environment with the packages of a file.
pub(super) fn install_requirements(folder: &Path, requirements: &str) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context("venv is a package of Python")?;
    let mut pip = Command::new(folder.join("bin").join("pip"));
    run(pip.args(["install", "--quiet", "--requirement"]).arg(source(requirements)?))
}
