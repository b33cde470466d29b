//! The size of the binary, and how long it takes until the server is ready: from nothing, as a gateway or a writer, and after a kill
//! with the window of remembered ids full.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::batch::{self, Until};
use crate::Setup;
use crate::reference::check_loop::Piece;
use harness::metrics;
use harness::report::{Bar, Row, median};
use harness::server::NULL_SINK;
use harness::server::{Launch, ProcessRole};
use harness::two_services::{SinkSpec, gateway_config, writer_config};
use testkit::ports::free_address;

const STARTS: u32 = 20;
const KILLS: u32 = 5;
/// More than the window can have, in any layout.
const IDS: u64 = 2_000_000;
const IDS_IN_BATCH: u64 = 20_000;
/// The fewest ids in the window for a meaningful figure.
const IDS_REMEMBERED_MIN: f64 = 1_000_000.0;

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let bytes = std::fs::metadata(&setup.binary)?.len();
    let row = |what: &str, measured, unit, most| Row::alone(what, unit, measured, Bar::AtMost(most));
    Ok(vec![
        row("binary", bytes as f64 / 1e6, "MB", 20.0),
        row("ready with an empty directory, median of 20", from_nothing(setup)?, "ms", 50.0),
        row("gateway ready, median of 20", of_role(setup, ProcessRole::Gateway)?, "ms", 100.0),
        row("writer ready, median of 20", of_role(setup, ProcessRole::Writer)?, "ms", 100.0),
        row("ready after a kill under load, the window of ids full, slowest of 5", after_kills(setup)?, "ms", 1000.0),
    ])
}

fn from_nothing(setup: &Setup) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let (server, took) = setup.fresh_server(None)?.ready_after()?;
        times.push(took.as_secs_f64() * 1e3);
        server.stop()?;
    }
    Ok(median(times))
}

/// A gateway is ready whether a writer answers or not.
fn of_role(setup: &Setup, role: ProcessRole) -> Result<f64> {
    let sink = SinkSpec { name: "local", settings: "kind = \"sqlite\"\n" };
    let config = match role {
        ProcessRole::Gateway => gateway_config(&[free_address()], &[sink])?,
        _ => writer_config(&[sink]),
    };
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let launch = Launch::fresh(role, &setup.binary, &setup.folder.join(role.subcommand()), &config)?;
        let (server, took) = launch.ready_after()?;
        times.push(took.as_secs_f64() * 1e3);
        server.stop()?;
    }
    Ok(median(times))
}

fn after_kills(setup: &Setup) -> Result<f64> {
    let launch = setup.fresh_server(Some(&NULL_SINK.replace("routes", "id = \"/id\"\nroutes")))?;
    let mut server = launch.ready()?;
    let mut slowest = 0.0_f64;
    for kill in 0..u64::from(KILLS) {
        let batches = batch::batches(&pieces(kill * IDS));
        // One connection sends them in their order, and each once.
        batch::send(launch.intake, &batches, 1, Until::Sent(IDS))?;
        server.kill()?;
        let took;
        (server, took) = launch.ready_after()?;
        slowest = slowest.max(took.as_secs_f64() * 1e3);
        let remembered = metrics::sum(&server.metrics()?, "forebay_duplicate_window_ids");
        if remembered < IDS_REMEMBERED_MIN {
            bail!("{remembered} ids are remembered after a kill: the window isn't full");
        }
    }
    server.stop()?;
    Ok(slowest)
}

/// Records with unique ids, from `first` on.
fn pieces(first: u64) -> Vec<Piece> {
    let piece = |start: u64| {
        let mut lines = String::new();
        for number in start..start + IDS_IN_BATCH {
            let _ = writeln!(lines, "{{\"id\":\"{number}\"}}");
        }
        Piece { bytes: lines.into_bytes(), events: IDS_IN_BATCH }
    };
    (first..first + IDS).step_by(usize::try_from(IDS_IN_BATCH).unwrap_or(usize::MAX)).map(piece).collect()
}
