//! The image: its size, its user, and the time until a container of it is ready.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Setup;
use super::container::{Container, Site, USER};
use crate::http::{self, Connection};
use crate::report::{Bar, Row, median};
use crate::{image, workspace};

const HEALTH_LIMIT: Duration = Duration::from_secs(30);
const OPEN: &str = "[gateway]\nopen = true\n";

/// Starts containers and checks them.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    run_on(setup, &Site::start(&setup.binary)?)
}

/// The same in this site.
pub(super) fn run_on(setup: &Setup, site: &Site) -> Result<Vec<Row>> {
    let megabytes = image::size(&site.tag, &mut site.docker.command())? as f64 / 1e6;
    let mut times = Vec::new();
    for round in 0..setup.rounds {
        let folder = site.folder(&setup.folder, &format!("data-{round}"))?;
        let container = site.serve(&format!("start-{round}"), &folder, OPEN, &["--health-interval", "500ms"])?;
        times.push(milliseconds_until_ready(site, &container)?);
        if round == 0 {
            check(site, &container)?;
        }
        container.remove(&site.docker)?;
    }
    fresh_volume(site)?;
    let row = |what: &str, measured, unit, most| Row {
        what: what.into(),
        measured,
        unit,
        reference: None,
        bar: Bar::AtMost(most),
    };
    Ok(vec![
        row("image", megabytes, "MB", 20.0),
        row("container, from the process's start until /readyz answers 200", median(times), "ms", 150.0),
    ])
}

/// The time from the process's start, as Docker recorded it, until the first answer.
fn milliseconds_until_ready(site: &Site, container: &Container) -> Result<f64> {
    Ok((container.ready_at - seconds(&container.inspect(&site.docker, "{{.State.StartedAt}}")?)?) * 1e3)
}

/// A time as Docker prints it, in seconds since 1970.
fn seconds(text: &str) -> Result<f64> {
    let printed = workspace::captured(Command::new("date").args(["+%s.%N", "--date", text]))?;
    printed.trim().parse().with_context(|| format!("`date` doesn't know {text}"))
}

/// Checks that the process isn't root, has no capabilities, and is healthy by the image's health check.
fn check(site: &Site, container: &Container) -> Result<()> {
    let pid = container.inspect(&site.docker, "{{.State.Pid}}")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("reading the container's process")?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let user = format!("{USER}\t{USER}\t{USER}\t{USER}");
    if field("Uid:") != user || field("CapEff:") != "0000000000000000" {
        bail!("the container runs as {} with capabilities {}", field("Uid:"), field("CapEff:"));
    }
    let begun = Instant::now();
    while container.inspect(&site.docker, "{{.State.Health.Status}}")? != "healthy" {
        if begun.elapsed() > HEALTH_LIMIT {
            bail!("the container isn't healthy: {}", container.inspect(&site.docker, "{{json .State.Health}}")?);
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Checks that a new named volume belongs to the image's user, also with a read-only root.
fn fresh_volume(site: &Site) -> Result<()> {
    let address = testkit::ports::free_address();
    let mut run = site.docker.command();
    run.args(["run", "--detach", "--name", "fresh", "--network", "host", "--read-only", "--cap-drop", "ALL"]);
    run.args(["--volume", "fresh:/data", "--env", "FOREBAY_GATEWAY_ADMIN=127.0.0.1:0"]);
    run.args(["--env", &format!("FOREBAY_GATEWAY_LISTEN={address}"), &site.tag]);
    workspace::captured(&mut run)?;
    let request = http::post("/ingest/event", &["Content-Type: application/json"], b"{\"n\":1}");
    let begun = Instant::now();
    loop {
        match Connection::open(address).and_then(|mut one| one.send(&request)) {
            Ok(answer) if answer.status == 200 => return Ok(()),
            _ if begun.elapsed() > HEALTH_LIMIT => {
                let logs = site.docker.command().args(["logs", "fresh"]).output()?;
                bail!("a server on a fresh volume takes no event: {}", String::from_utf8_lossy(&logs.stderr));
            }
            _ => thread::sleep(Duration::from_millis(5)),
        }
    }
}
