//! The units of a gateway and a writer, with the example configurations of the package: an event goes through both.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::LIMIT;
use crate::http::{self, Connection};
use crate::machine::Machine;
use crate::wait::until;
use testkit::ports::free_address;

const EXAMPLES: &str = "/usr/share/doc/forebay/examples";
const DATABASE: &str = "/var/lib/forebay-writer/events.db";

/// Starts both, sends an event, waits until the writer has stored it, and stops both.
pub(super) fn run(machine: &Machine) -> Result<()> {
    let [intake, admin, writer, writer_admin] = std::array::from_fn(|_| free_address());
    let set = |path: &str, text: String| fs::write(machine.path(path), text).with_context(|| format!("writing {path}"));
    let example =
        |name: &str| fs::read_to_string(machine.path(&format!("{EXAMPLES}/{name}"))).context("reading an example");
    set("/etc/forebay/gateway.toml", example("gateway.toml")?.replace("127.0.0.1:8081", &writer.to_string()))?;
    set("/etc/forebay/writer.toml", example("writer.toml")?)?;
    let ports = |role: &str, listen, admin| format!("FOREBAY_{role}_LISTEN={listen}\nFOREBAY_{role}_ADMIN={admin}\n");
    set("/etc/default/forebay-gateway", ports("GATEWAY", intake, admin))?;
    set("/etc/default/forebay-writer", ports("WRITER", writer, writer_admin))?;
    machine.run("systemctl", &["start", "forebay-writer", "forebay-gateway"])?;
    let answer = Connection::open(intake)?.send(&http::post("/ingest/event", &[], b"{\"of\": \"both\"}"))?;
    ensure!(answer.status == 200, "the gateway answered {}", answer.status);
    let count = "select count(*) from events where payload = '{\"of\": \"both\"}'";
    // The first batch creates the file.
    until("the writer has stored the event", LIMIT, || {
        let mut sqlite = machine.command("sqlite3");
        let counted = sqlite.args(["-readonly", DATABASE, count]).stderr(Stdio::null()).output()?;
        Ok(counted.stdout == b"1\n")
    })?;
    machine.run("systemctl", &["stop", "forebay-gateway", "forebay-writer"]).map(drop)
}
