//! Senders from npm.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::installed::{ensure, folder, source, text};
use super::sender::{ALL, MOST, Sender, Start, Started};
use super::settings::{Extra, Place};
use crate::npm;
use crate::workspace::copy;

/// The senders of the registry.
pub(super) const SENDERS: &[Sender] = &[
    sender("elastic-node", Place::Root("es"), ALL),
    // It sends a batch once more at most: its client's retries have no pause.
    sender("pino-elasticsearch", Place::Root("es"), MOST),
    sender("opentelemetry-node-json", Place::Root("otlp"), ALL),
    sender("opentelemetry-node-protobuf", Place::Path("/otlp"), ALL),
    sender("segment-node", Place::Root("segment"), ALL),
    sender("winston-loki", Place::Root("loki"), MOST),
    // It resends an unanswered batch together with newer lines, so the digest of the body doesn't identify a retry.
    Sender { extra: Extra::ContentIds, ..sender("winston-loki-batches", Place::Root("loki"), ALL) },
    sender("pino-loki", Place::Root("loki"), MOST),
    sender("splunk-logging", Place::Root("hec"), ALL),
    sender("cloudevents-node-binary", Place::Path("/cloudevents"), ALL),
    sender("cloudevents-node-structured", Place::Path("/cloudevents"), ALL),
    sender("cloudevents-node-batch", Place::Path("/cloudevents"), ALL),
];

const fn sender(name: &'static str, place: Place, least: usize) -> Sender {
    Sender { name, place, extra: Extra::Nothing, least, start }
}

fn start(start: &Start<'_>) -> Result<Started> {
    Ok(start.program(script("senders.mjs")?))
}

/// A script of `xtask/senders`, copied to the packages: Node looks for them next to the script.
pub(super) fn script(name: &str) -> Result<Command> {
    let copied = folder("node")?.join(name);
    copy(&source(name)?, &copied)?;
    let mut node = Command::new("node");
    node.arg(copied);
    Ok(node)
}

/// Installs the packages.
pub(super) fn install() -> Result<()> {
    ensure("node", &text("package.json")?, |folder| install_into(folder, "package.json")).map(drop)
}

/// Installs the packages of a description of `xtask/senders`.
pub(super) fn install_into(folder: &Path, description: &str) -> Result<()> {
    npm::install(folder, &source(description)?)
}
