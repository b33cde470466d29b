//! Segment's library for web pages, in Chromium.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::installed::{ensure, folder, source, text};
use super::node::install_into;
use super::sender::{ALL, Sender, Start, Started};
use super::settings::{Extra, Place};
use crate::chromium;
use crate::workspace::{captured, copy, empty_directory};

/// The types of Segment's messages.
const OF_PAGE: &str = "segment.*";
const OTHERS: &str = "orders.*";

/// The page, which needs CORS and a token.
pub(super) const SENDERS: &[Sender] =
    &[Sender { name: "segment-page", place: Place::Path("/segment"), extra: Extra::Page, least: ALL, start }];

fn start(start: &Start<'_>) -> Result<Started> {
    let copied = folder("browser")?.join("browser.mjs");
    copy(&source("browser.mjs")?, &copied)?;
    let mut node = Command::new("node");
    node.arg(copied).env("CHROMIUM", chromium::path()?);
    node.env("WRITE_KEY", token(start, "page", OF_PAGE)?).env("OTHER_KEY", token(start, "others", OTHERS)?);
    Ok(start.program(node))
}

/// Creates a token that can post some types only.
fn token(start: &Start<'_>, name: &str, types: &str) -> Result<String> {
    let mut command = Command::new(start.binary);
    command.args(["token", "new", name, "--scope", "ingest", "--types", types, "--data"]).arg(start.data());
    captured(&mut command).context("creating a token")
}

/// Installs the library and the driver.
pub(super) fn install() -> Result<()> {
    ensure("browser", &text("package-browser.json")?, |folder: &Path| {
        empty_directory(folder)?;
        install_into(folder, "package-browser.json")
    })
    .map(drop)
}
