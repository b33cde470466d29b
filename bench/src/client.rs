//! The client tools: `forebay load` with compressed lines, `forebay load --count --match` against ripgrep, and `forebay bench`
//! against wrk.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::records::Records;
use crate::Setup;
use crate::cores::{Side, on_core_of};
use harness::report::{Bar, Row, median};
use harness::server::NULL_SINK;
use harness::server::children_cpu;
use harness::workspace;
use harness::wrk::{self, WrkLoad};

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// The input of `load`.
    #[arg(long, default_value_t = 1_000_000)]
    lines: u64,
    /// Bytes of the file that is searched.
    #[arg(long, default_value_t = 1 << 30)]
    search_bytes: u64,
}

/// A search for a word, and one for a shape.
const PATTERNS: [&str; 2] = [r"feeds?/|robots\.txt", r#""client":"\d+\.\d+\.1\d\d\.\d+".*"status":40\d"#];
const CONNECTIONS: u32 = 256;
/// How long each load lasts: so short that the machine is about as fast for both.
const ROUND: Duration = Duration::from_secs(2);

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let file = setup.folder.join("lines.ndjson");
    let mut rows = vec![load(setup, options, &file)?];
    let bytes = write_lines(&file, options, |_, bytes| bytes >= options.search_bytes)?.bytes;
    for pattern in PATTERNS {
        rows.push(search(setup, &file, bytes, pattern)?);
    }
    rows.extend(bench(setup)?);
    Ok(rows)
}

struct Written {
    lines: u64,
    bytes: u64,
}

/// Writes the records again and again until there are enough of them.
fn write_lines(file: &Path, options: &Options, is_enough: impl Fn(u64, u64) -> bool) -> Result<Written> {
    let pieces = options.records.pieces()?;
    let mut out = File::create(file).with_context(|| format!("writing {}", file.display()))?;
    let mut written = Written { lines: 0, bytes: 0 };
    for piece in pieces.iter().cycle() {
        if is_enough(written.lines, written.bytes) {
            break;
        }
        out.write_all(&piece.bytes)?;
        written.lines += piece.events;
        written.bytes += piece.bytes.len() as u64;
    }
    Ok(written)
}

/// Into the server as it is without a configuration, until the last line was answered.
fn load(setup: &Setup, options: &Options, file: &Path) -> Result<Row> {
    let lines = write_lines(file, options, |lines, _| lines >= options.lines)?.lines;
    let packed = workspace::gzip(file)?;
    let mut rates = Vec::new();
    for round in 1..=setup.rounds {
        let launch = setup.fresh_server(None)?;
        let server = launch.ready()?;
        let url = format!("http://{}", launch.intake);
        let state = setup.folder.join(format!("state-{round}"));
        let mut command = Command::new(&setup.binary);
        command.args(["load", "--url", &url, "--type", "access", "--state"]).arg(&state).arg(&packed);
        let begun = Instant::now();
        workspace::output(&mut command)?;
        rates.push(lines as f64 / begun.elapsed().as_secs_f64());
        server.stop()?;
    }
    Ok(Row::alone("load, gzip, into SQLite", "lines/s", median(rates), Bar::AtLeast(400_000.0)))
}

fn search(setup: &Setup, file: &Path, bytes: u64, pattern: &str) -> Result<Row> {
    let mut rounds = Vec::new();
    for _ in 0..=setup.rounds {
        let mut reference = Command::new("rg");
        reference.args(["--no-config", "--threads", "1", "-c", pattern]).arg(file);
        let (expected, reference) = timed(&mut reference)?;
        let mut own = Command::new(&setup.binary);
        own.args(["load", "--count", "--match", pattern]).arg(file);
        let (printed, own) = timed(&mut own)?;
        if printed.trim() != expected.trim() {
            bail!("{pattern}: ripgrep counts {}, load {}", expected.trim(), printed.trim());
        }
        rounds.push((own, reference));
    }
    // In the first round the file may not be in memory yet.
    let rate = |seconds: f64| bytes as f64 / seconds / 1e6;
    let rounds: Vec<_> = rounds.iter().skip(1).map(|(own, reference)| (rate(*own), rate(*reference))).collect();
    Ok(Row::alternating(
        &format!("load --count --match {pattern}, against ripgrep"),
        "MB/s",
        &rounds,
        Bar::AtLeast(0.5),
    ))
}

fn timed(command: &mut Command) -> Result<(String, f64)> {
    let begun = Instant::now();
    let printed = workspace::output(command)?;
    Ok((printed, begun.elapsed().as_secs_f64()))
}

/// The client has a core, the server the other. On shared cores a client that uses less of them leaves more to the server, and shows a
/// higher rate because it is cheaper, not because it counts in another way.
fn bench(setup: &Setup) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(Some(NULL_SINK))?;
    let server = on_core_of(Side::Server, || launch.ready())?;
    let rows = on_core_of(Side::Client, || bench_alternately(setup, launch.intake))?;
    server.stop()?;
    Ok(rows)
}

fn bench_alternately(setup: &Setup, intake: SocketAddr) -> Result<Vec<Row>> {
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for round in 0..=3 * setup.rounds {
        let before = children_cpu()?;
        let reference =
            wrk::run(intake, WrkLoad { connections: CONNECTIONS, duration: ROUND, is_keyed: false }, &setup.folder)?;
        let reference_cpu = (children_cpu()? - before).as_secs_f64() * 1e6 / reference.requests as f64;
        let before = children_cpu()?;
        let (requests, rate) = run_bench(setup, &format!("http://{intake}"))?;
        let cpu = (children_cpu()? - before).as_secs_f64() * 1e6 / requests;
        if round > 0 {
            rates.push((rate, reference.requests_per_second));
            costs.push((cpu, reference_cpu));
        }
    }
    Ok(vec![
        Row::alternating("bench, against wrk", "requests/s", &rates, Bar::AtLeast(0.95)),
        Row::alternating("bench, against wrk, no more than", "requests/s", &rates, Bar::AtMost(1.05)),
        Row::alternating("bench, CPU, against wrk", "µs/request", &costs, Bar::AtMost(2.0)),
    ])
}

/// How many requests were answered, and how many a second.
fn run_bench(setup: &Setup, url: &str) -> Result<(f64, f64)> {
    let mut command = Command::new(&setup.binary);
    command.args(["bench", "--kind", "job", "--json", "--url", url]);
    command.args(["--connections", &CONNECTIONS.to_string(), "--duration", &format!("{}s", ROUND.as_secs())]);
    let report: serde_json::Value = serde_json::from_str(&workspace::output(&mut command)?)?;
    let figure = |name: &str| report[name].as_f64().with_context(|| format!("bench prints no {name}"));
    Ok((figure("requests")?, figure("events_per_second")?))
}
