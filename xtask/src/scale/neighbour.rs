//! A noisy neighbour: latency of intake while another process keeps all cores busy, with and without limits.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Setup;
use super::container::Site;
use super::table::Table;
use crate::latency::latency_ms;
use crate::report::{Bar, Row};
use crate::server::NULL_SINK;
use crate::workspace;

const PER_SECOND: &str = "1000";
const DURATION: Duration = Duration::from_secs(10);
/// Forebay's weight when processor time is scarce. The neighbour has Docker's default, 1,024.
const RESERVED: &[&str] = &["--cpu-shares", "8192"];

/// The limits of the server and of its neighbour.
struct Case {
    name: &'static str,
    server: &'static [&'static str],
    neighbour: Option<&'static [&'static str]>,
}

const CASES: &[Case] = &[
    Case { name: "alone", server: &[], neighbour: None },
    Case { name: "with a neighbour, without limits", server: &[], neighbour: Some(&[]) },
    Case { name: "Forebay's share reserved", server: RESERVED, neighbour: Some(&[]) },
    Case { name: "the neighbour limited to half", server: &[], neighbour: Some(&["--cpus", "0.5"]) },
    Case { name: "both", server: RESERVED, neighbour: Some(&["--cpus", "0.5"]) },
];
/// The highest p99 with limits, in multiples of that without a neighbour.
const SLOWER_MOST: f64 = 5.0;

/// Measures each case.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let site = Site::start(&setup.binary)?;
    let mut table = Table::new("latency of 1,000 durable POSTs a second, in µs", &["p50", "p99", "p99.9"]);
    let mut p99 = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let folder = site.folder(&setup.folder, &format!("data-{number}"))?;
        let server = site.serve(&format!("server-{number}"), &folder, NULL_SINK, case.server)?;
        if let Some(limits) = case.neighbour {
            site.burn("neighbour", limits)?;
        }
        let report = measure(setup, &format!("http://{}", server.address))?;
        let figures: Result<Vec<f64>> =
            ["p50", "p99", "p99.9"].iter().map(|name| Ok(latency_ms(&report, name)? * 1e3)).collect();
        let figures = figures?;
        table.row(case.name, &figures);
        p99.push(figures[1]);
        if case.neighbour.is_some() {
            site.docker.run(["rm", "--force", "neighbour"])?;
        }
        server.remove(&site.docker)?;
    }
    table.print();
    let pairs = [(p99[p99.len() - 1], p99[0])];
    Ok(vec![Row::alternating(
        "noisy neighbour, share and limit: p99 against alone",
        "µs",
        &pairs,
        Bar::AtMost(SLOWER_MOST),
    )])
}

/// Sends at a fixed rate with `forebay bench`.
fn measure(setup: &Setup, url: &str) -> Result<serde_json::Value> {
    let duration = format!("{}s", DURATION.as_secs());
    let mut bench = Command::new(&setup.binary);
    bench.args(["bench", "--json", "--rate", PER_SECOND, "--duration", &duration, "--url", url]);
    // Exit code 3 means that the server was late, which this measures.
    let output = bench.output().context("starting forebay bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .with_context(|| format!("forebay bench printed {text}{}", String::from_utf8_lossy(&output.stderr)))
}

impl Site {
    /// Starts a process that keeps all cores busy, with these options of `docker run`.
    pub(super) fn burn(&self, name: &str, limits: &[&str]) -> Result<()> {
        let mut run = self.docker.command();
        run.args(["run", "--detach", "--name", name]).args(limits).args([
            super::container::REFERENCE,
            "reference",
            "burn",
        ]);
        workspace::captured(&mut run).map(drop)
    }
}
