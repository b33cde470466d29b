//! Resident bytes of the server in the states that matter.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Setup;
use super::batch::{self, Until};
use crate::reference::check_loop::pieces;
use harness::http::Connection;
use harness::report::{Bar, Row};
use harness::server::{Launch, Server};
use harness::wrk::{self, WrkLoad};

#[derive(clap::Args)]
pub(super) struct Options {
    /// Events that wait for a sink that fails; 0 leaves this part out.
    #[arg(long, default_value_t = 10_000_000)]
    backlog: u64,
    /// Connections that send nothing more after their first request.
    #[arg(long, default_value_t = 8_000)]
    idle: u32,
}

const BUSY_CONNECTIONS: u32 = 1_000;
/// An idle process: long enough after the work of a start.
const SETTLE: Duration = Duration::from_secs(1);

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    raise_file_limit()?;
    let mut rows = idle_and_busy(setup)?;
    rows.push(idle_connections(setup, options.idle)?);
    if options.backlog > 0 {
        rows.push(busy_with_backlog(setup, options.backlog)?);
    }
    Ok(rows)
}

fn idle_and_busy(setup: &Setup) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(None)?;
    let server = launch.ready()?;
    sleep(SETTLE);
    let idle = server.process.memory()?.now;
    let busy = busy(setup, &launch, &server)?;
    server.wait_stored()?;
    server.stop()?;
    Ok(vec![row("idle", idle, 10.0), row("1,000 busy connections", busy, 32.0)])
}

/// The sink fails because a directory has the name of its database.
fn busy_with_backlog(setup: &Setup, backlog: u64) -> Result<Row> {
    let launch = setup.fresh_server(None)?;
    let blocker = launch.data.join("events.db").join("in-the-way");
    std::fs::create_dir_all(&blocker).with_context(|| format!("making {}", blocker.display()))?;
    let server = launch.ready()?;
    let line = b"{\"job\":\"7f03a1c2e994\",\"status\":\"Success: process exited with code 0.\",\"attempt\":1}\n";
    let batches = batch::batches(&pieces(line));
    let sent = batch::send(launch.intake, &batches, 1, Until::Sent(backlog))?;
    let busy = busy(setup, &launch, &server)?;
    let pending = server.pending()?;
    if pending < sent.events {
        bail!("{pending} events are pending, though {} were sent to a sink that can't store", sent.events);
    }
    server.stop()?;
    Ok(row(&format!("1,000 busy connections, sink failing, backlog {pending:.0}"), busy, 32.0))
}

fn busy(setup: &Setup, launch: &Launch, server: &Server) -> Result<u64> {
    server.process.forget_peak()?;
    let load = WrkLoad { connections: BUSY_CONNECTIONS, duration: setup.duration, is_keyed: false };
    wrk::run(launch.intake, load, &setup.folder)?;
    Ok(server.process.memory()?.most)
}

fn idle_connections(setup: &Setup, count: u32) -> Result<Row> {
    let launch = setup.fresh_server(None)?;
    let server = launch.ready()?;
    sleep(SETTLE);
    let before = server.process.memory()?.now;
    let connections = open_idle(launch.intake, count)?;
    sleep(SETTLE);
    let after = server.process.memory()?.now;
    drop(connections);
    server.stop()?;
    let each = (after as f64 - before as f64) / f64::from(count) / 1024.0;
    Ok(Row::alone(&format!("{count} idle connections, each"), "KiB", each, Bar::AtMost(12.0)))
}

fn open_idle(server: SocketAddr, count: u32) -> Result<Vec<Connection>> {
    let open = |number| {
        let mut connection = Connection::open(server).with_context(|| format!("opening connection {number}"))?;
        let answer = connection.get("/healthz").with_context(|| format!("asking on connection {number}"))?;
        match answer.status {
            200 => Ok(connection),
            status => bail!("/healthz answered {status} on connection {number}"),
        }
    };
    (1..=count).map(open).collect()
}

fn row(what: &str, bytes: u64, most: f64) -> Row {
    Row::alone(what, "MB", bytes as f64 / 1e6, Bar::AtMost(most))
}

/// Both ends of every connection need a descriptor: ours here, and the server inherits the limit.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).context("raising the limit of open files")
}
