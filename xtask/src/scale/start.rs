//! The image: its size, its user, and the time until a container of it is ready.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Setup;
use super::container::{Container, Site, USER};
use crate::http::{self, Client};
use crate::report::{Bar, Row, median};
use crate::wait::until;
use crate::{image, workspace};

const HEALTH_LIMIT: Duration = Duration::from_secs(30);
const OPEN: &str = "[gateway]\nallow_anonymous = true\n";

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
    Ok(vec![
        Row::alone("image", "MB", megabytes, Bar::AtMost(20.0)),
        Row::alone(
            "container, from the process's start until /readyz answers 200",
            "ms",
            median(times),
            Bar::AtMost(150.0),
        ),
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
    let is_healthy = || Ok(container.inspect(&site.docker, "{{.State.Health.Status}}")? == "healthy");
    until("the container is healthy", HEALTH_LIMIT, is_healthy)
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
    let mut client = Client::new(address);
    let is_taken = || Ok(client.send(&request).is_ok_and(|answer| answer.status == 200));
    until("a server on a fresh volume takes an event", HEALTH_LIMIT, is_taken).with_context(|| site.logs("fresh"))
}
