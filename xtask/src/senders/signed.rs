//! Signed webhooks: requests that the SDKs of the providers have signed, at one webhook intake for each provider. The scripts check the
//! responses: a valid signature is accepted, a repeated request is stored once, and a forged or old one is rejected.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::installed::{ensure, folder, source, text};
use super::node::install_into;
use super::python::{install_requirements, script};
use super::settings::{Extra, Settings};
use crate::server::{Launch, ProcessRole};
use crate::workspace::{copy, run, skipped};

/// Installs the SDKs.
pub(super) fn install() -> Result<()> {
    ensure("signed-python", &text("requirements-signed.txt")?, |folder| {
        install_requirements(folder, "requirements-signed.txt")
    })?;
    ensure("signed-node", &text("package-signed.json")?, |folder| install_into(folder, "package-signed.json")).map(drop)
}

/// Runs the scripts of both languages against one server. Each ends with a status other than 0 if a response is wrong.
pub(super) fn run_scripts(binary: &Path, run_folder: &Path) -> Result<()> {
    let settings = Settings::new(Extra::Webhooks);
    let launch = Launch::of_role(ProcessRole::Serve, binary, run_folder, Some(&settings.text))?;
    let server = launch.ready()?;
    let copied = folder("signed-node")?.join("signed.mjs");
    let python = folder("signed-python")?.join("bin").join("python");
    for name in ["signed.py", "signed.mjs"] {
        if !source(name)?.is_file() {
            skipped(&format!("senders: {name} is missing"))?;
            continue;
        }
        let mut command = if name == "signed.py" {
            script(&python, name)?
        } else {
            copy(&source(name)?, &copied)?;
            let mut node = Command::new("node");
            node.arg(&copied);
            node
        };
        command.env("FOREBAY_URL", format!("http://{}", launch.intake));
        command.env("FOREBAY_METRICS", format!("http://{}/metrics", launch.admin));
        run(&mut command).with_context(|| name.to_owned())?;
    }
    server.wait_stored()?;
    server.stop()
}
