//! A steady load of single events without ids, through a gateway and a writer into PostgreSQL: the processor time and the memory of both,
//! and whether their memory grows.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Setup;
use harness::report::{Bar, Row};
use harness::server::{Process, Server};
use harness::store::{CampaignStore, PostgresStore, StoreServer};
use harness::two_services::{Pair, SinkSpec};

#[derive(clap::Args)]
pub(super) struct Options {
    /// How many seconds the load lasts. Growth is measured from the end of its first third on.
    #[arg(long, default_value_t = 180)]
    load_seconds: u64,
    /// Events a second, each in a separate request.
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
}

const CONNECTIONS: &str = "50";
const SAMPLE: Duration = Duration::from_millis(500);
/// Of one core.
const CPU_MOST: f64 = 0.1;
const GATEWAY_MOST: f64 = 12.0;
const WRITER_MOST: f64 = 10.0;
/// Megabytes a minute.
const GROWTH_MOST: f64 = 0.2;

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let mut store = PostgresStore::require()?;
    let settings = store.sink();
    let pair = Pair::start(&setup.binary, &setup.folder, SinkSpec { name: "warehouse", settings: &settings })?;
    let mut load = start_load(setup, &pair, options)?;
    let [gateway, writer] = watch(&mut load, [&pair.gateway, &pair.writer])?;
    check_load(load)?;
    pair.gateway.wait_stored()?;
    pair.stop()?;
    let rows = store.ids()?.unwrap_or(0);
    let wanted = options.load_seconds * options.rate;
    if rows != wanted {
        bail!("{wanted} events were posted, and PostgreSQL has rows of {rows}");
    }
    let least = Duration::from_secs(options.load_seconds / 3);
    println!("the writer took {:.3} of a core", writer.cpu);
    let row = |what: &str, measured, unit, bar| Row::alone(what, unit, measured, bar);
    Ok(vec![
        row("gateway, user and system time", gateway.cpu, "cores", Bar::AtMost(CPU_MOST)),
        row("gateway, most anonymous memory", gateway.most(), "MB", Bar::AtMost(GATEWAY_MOST)),
        row("writer, most anonymous memory", writer.most(), "MB", Bar::AtMost(WRITER_MOST)),
        row("gateway, growth", gateway.growth(least), "MB/min", Bar::AtMost(GROWTH_MOST)),
        row("writer, growth", writer.growth(least), "MB/min", Bar::AtMost(GROWTH_MOST)),
    ])
}

fn start_load(setup: &Setup, pair: &Pair, options: &Options) -> Result<std::process::Child> {
    let mut bench = Command::new(&setup.binary);
    bench.args(["bench", "--json", "--kind", "job", "--connections", CONNECTIONS]);
    bench.args(["--rate", &options.rate.to_string(), "--duration", &format!("{}s", options.load_seconds)]);
    bench.args(["--url", &format!("http://{}", pair.launch.intake)]);
    bench.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting bench")
}

/// Fails if a request wasn't answered 200, or wasn't sent in time.
fn check_load(load: std::process::Child) -> Result<()> {
    let output = load.wait_with_output().context("waiting for bench")?;
    if !output.status.success() {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        bail!("the load wasn't clean ({}): {report}", output.status);
    }
    Ok(())
}

/// The resources of a process during the load.
struct Watched {
    /// Processor time, as a share of one core.
    cpu: f64,
    /// Anonymous memory in megabytes, and when that was, from the load's beginning.
    samples: Vec<(Duration, f64)>,
}

/// Samples processes until the load ends.
fn watch(load: &mut std::process::Child, servers: [&Server; 2]) -> Result<[Watched; 2]> {
    let processes = servers.map(|server| &server.process);
    let times = |processes: [&Process; 2]| -> Result<Vec<Duration>> { processes.iter().map(|one| one.cpu()).collect() };
    let (begun, before) = (Instant::now(), times(processes)?);
    let mut samples = [Vec::new(), Vec::new()];
    while load.try_wait().context("looking after bench")?.is_none() {
        for (samples, process) in samples.iter_mut().zip(processes) {
            samples.push((begun.elapsed(), process.anonymous_memory()? as f64 / 1e6));
        }
        std::thread::sleep(SAMPLE);
    }
    let lasted = begun.elapsed().as_secs_f64();
    let shares: Vec<f64> =
        times(processes)?.iter().zip(before).map(|(now, then)| (*now - then).as_secs_f64() / lasted).collect();
    let [gateway, writer] = samples;
    Ok([Watched { cpu: shares[0], samples: gateway }, Watched { cpu: shares[1], samples: writer }])
}

impl Watched {
    fn most(&self) -> f64 {
        self.samples.iter().map(|(_, memory)| *memory).fold(0.0, f64::max)
    }

    /// Megabytes a minute by least squares, from `least` on.
    fn growth(&self, least: Duration) -> f64 {
        let late = || {
            self.samples.iter().filter(|(at, _)| *at >= least).map(|(at, memory)| (at.as_secs_f64() / 60.0, *memory))
        };
        let count = late().count() as f64;
        let (time, memory) = late().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / count, sum.1 + one.1 / count));
        let of_both: f64 = late().map(|one| (one.0 - time) * (one.1 - memory)).sum();
        of_both / late().map(|one| (one.0 - time).powi(2)).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_excludes_the_start() {
        let sample = |second: u64, memory| (Duration::from_secs(second), memory);
        let start = (0..60).map(|second| sample(second, second as f64));
        let steady = (60..180).map(|second| sample(second, 60.0 + (second as f64 - 60.0) / 60.0 * 0.5));
        let watched = Watched { cpu: 0.0, samples: start.chain(steady).collect() };
        assert!((watched.growth(Duration::from_secs(60)) - 0.5).abs() < 1e-6);
        assert!(watched.growth(Duration::ZERO) > 5.0);
        assert!((watched.most() - 60.991_666).abs() < 1e-3);
    }
}
