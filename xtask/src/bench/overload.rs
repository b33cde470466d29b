//! Ten times what the server can take, on a fixed schedule: it goes on at its own pace, refuses the rest at once, keeps its
//! memory, and is as before when it is over.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::client::gzip;
use super::records::Records;
use super::report::{Bar, Row};
use super::{READY_LIMIT, Setup};
use crate::http::{self, Connection};
use crate::server::Server;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// How long each overload lasts, in seconds.
    #[arg(long, default_value_t = 120)]
    overload_seconds: u64,
    /// One kind of load alone.
    #[arg(long)]
    only: Option<Kind>,
}

/// What the server is overloaded with.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Singles,
    Batches,
}

const OVERLOAD: f64 = 10.0;
/// The share of the peak at which latency is compared before and after.
const NORMAL: f64 = 0.25;
/// The server is as before so long after the overload.
const RECOVERY: Duration = Duration::from_secs(5);
const SINGLE_CONNECTIONS: u32 = 1_000;
/// Each sends a batch of about 1 MiB, packed: more than the server keeps in flight.
const BATCH_CONNECTIONS: u32 = 256;
const PEAK_CONNECTIONS: u32 = 8;

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let overload = Duration::from_secs(options.overload_seconds.max(4));
    let wanted = |kind| options.only.is_none_or(|only| only == kind);
    let mut rows = Vec::new();
    if wanted(Kind::Singles) {
        rows.extend(singles(setup, overload)?);
    }
    if wanted(Kind::Batches) {
        rows.extend(batches(setup, options, overload)?);
    }
    Ok(rows)
}

fn row(what: &str, measured: f64, unit: &'static str, bar: Bar) -> Row {
    Row { what: what.into(), measured, unit, reference: None, bar }
}

fn rows(what: &str, goodput: (f64, f64), memory: Memory, latency: (f64, f64)) -> Vec<Row> {
    let goodput = [goodput];
    vec![
        Row::in_turn(
            &format!("{what}, ten times overloaded, against the peak"),
            "events/s",
            &goodput,
            Bar::AtLeast(0.9),
        ),
        row(&format!("{what}, most memory under overload"), memory.most as f64 / 1e6, "MB", Bar::AtMost(MEMORY_MB_MAX)),
        Row::in_turn(
            &format!("{what}, memory at the end of it, against its first quarter"),
            "MB",
            &[(memory.end as f64 / 1e6, memory.begin as f64 / 1e6)],
            Bar::AtMost(1.1),
        ),
        Row::in_turn(&format!("{what}, p99 5 s after it, against before"), "ms", &[latency], Bar::AtMost(2.0)),
    ]
}

/// What all bytes in flight, connections and caches may take together.
const MEMORY_MB_MAX: f64 = 256.0;

/// The most in the first quarter of an overload, in the rest of it, and in all.
#[derive(Clone, Copy)]
struct Memory {
    begin: u64,
    end: u64,
    most: u64,
}

/// Watches a server's memory while `load` runs.
fn with_memory<T>(server: &Server, length: Duration, load: impl FnOnce() -> Result<T> + Send) -> Result<(T, Memory)>
where
    T: Send,
{
    thread::scope(|scope| {
        let load = scope.spawn(load);
        server.process.forget_peak()?;
        thread::sleep(length / 4);
        let begin = server.process.memory()?.most;
        server.process.forget_peak()?;
        let loaded = load.join().map_err(|_| anyhow!("the load panicked"))??;
        let end = server.process.memory()?.most;
        Ok((loaded, Memory { begin, end, most: begin.max(end) }))
    })
}

fn singles(setup: &Setup, overload: Duration) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(None)?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let run = |rate: Option<f64>, duration| bench(setup, launch.intake, rate, duration);
    let peak = run(None, setup.duration * 2)?.events_per_second;
    let before = run(Some(peak * NORMAL), setup.duration)?;
    let (during, memory) = with_memory(&server, overload, || run(Some(peak * OVERLOAD), overload))?;
    thread::sleep(RECOVERY);
    let after = run(Some(peak * NORMAL), setup.duration)?;
    server.wait_stored()?;
    server.stop()?;
    Ok(rows("single events", (during.events_per_second, peak), memory, (after.p99_ms, before.p99_ms)))
}

struct Bench {
    events_per_second: f64,
    p99_ms: f64,
}

fn bench(setup: &Setup, server: SocketAddr, rate: Option<f64>, duration: Duration) -> Result<Bench> {
    let mut command = std::process::Command::new(&setup.binary);
    command.args(["bench", "--kind", "job", "--json", "--url", &format!("http://{server}")]);
    command.args(["--connections", &SINGLE_CONNECTIONS.to_string(), "--duration", &format!("{}s", duration.as_secs())]);
    if let Some(rate) = rate {
        command.args(["--rate", &format!("{rate:.0}")]);
    }
    // It exits with 3 where something was refused, which an overload may bring.
    let output = command.output().context("starting bench")?;
    let report: Value = serde_json::from_slice(&output.stdout).context("reading what bench prints")?;
    let answers = report["answers"].as_object().context("bench prints the answers")?;
    if let Some((status, count)) = answers.iter().find(|(status, _)| !matches!(status.as_str(), "200" | "503")) {
        bail!("{count} requests were answered {status}");
    }
    let p99 = report["latency_us"].as_array().into_iter().flatten().find(|pair| pair[0] == "p99");
    Ok(Bench {
        events_per_second: report["events_per_second"].as_f64().context("bench prints a rate")?,
        p99_ms: p99.and_then(|pair| pair[1].as_f64()).context("bench prints the 99th percentile")? / 1e3,
    })
}

fn batches(setup: &Setup, options: &Options, overload: Duration) -> Result<Vec<Row>> {
    let requests = packed(setup, &options.records)?;
    let launch = setup.fresh_server(None)?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let load = |connections, rate, duration| send(launch.intake, &requests, connections, rate, duration);
    let peak = load(PEAK_CONNECTIONS, None, setup.duration * 2)?;
    let before = load(PEAK_CONNECTIONS, Some(peak.batches_per_second * NORMAL), setup.duration)?;
    let rate = Some(peak.batches_per_second * OVERLOAD);
    let (during, memory) = with_memory(&server, overload, || load(BATCH_CONNECTIONS, rate, overload))?;
    println!(
        "packed batches: peak {:.0}/s; under overload {:.0}/s taken, {:.0}/s refused with 503",
        peak.batches_per_second,
        during.batches_per_second,
        during.refused as f64 / overload.as_secs_f64()
    );
    thread::sleep(RECOVERY);
    let after = load(PEAK_CONNECTIONS, Some(peak.batches_per_second * NORMAL), setup.duration)?;
    server.wait_stored()?;
    server.stop()?;
    let goodput = (during.events_per_second, peak.events_per_second);
    Ok(rows("packed batches", goodput, memory, (after.p99_ms, before.p99_ms)))
}

/// A request of a packed batch, and its events.
struct Packed {
    request: Vec<u8>,
    events: u64,
}

fn packed(setup: &Setup, records: &Records) -> Result<Vec<Packed>> {
    let pieces = records.pieces()?;
    let pack = |piece: &crate::reference::check_loop::Piece| -> Result<Packed> {
        let file = setup.folder.join("batch.ndjson");
        std::fs::write(&file, &piece.bytes)?;
        let bytes = std::fs::read(gzip(&file)?)?;
        let headers = ["Content-Type: application/x-ndjson", "Content-Encoding: gzip"];
        Ok(Packed { request: http::post("/ingest/batch", &headers, &bytes), events: piece.events })
    };
    pieces.iter().map(pack).collect()
}

struct Sent {
    events_per_second: f64,
    batches_per_second: f64,
    refused: u64,
    p99_ms: f64,
}

/// What the connections of one load share.
struct Load<'a> {
    server: SocketAddr,
    requests: &'a [Packed],
    /// Between two requests of one connection; none without a schedule.
    pause: Option<Duration>,
    begun: Instant,
    duration: Duration,
    next: AtomicU64,
    refused: AtomicU64,
    failed: AtomicBool,
}

fn send(
    server: SocketAddr,
    requests: &[Packed],
    connections: u32,
    rate: Option<f64>,
    duration: Duration,
) -> Result<Sent> {
    let pause = rate.map(|rate| Duration::from_secs_f64(f64::from(connections) / rate));
    let load = Load {
        server,
        requests,
        pause,
        begun: Instant::now(),
        duration,
        next: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let taken = thread::scope(|scope| {
        let clients: Vec<_> = (0..connections)
            .map(|number| {
                let (load, first) = (&load, pause.unwrap_or_default() * number / connections);
                scope.spawn(move || load.run(first))
            })
            .collect();
        let taken = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
        taken.collect::<Result<Vec<_>>>()
    })?;
    let mut latencies: Vec<f64> = taken.iter().flatten().map(|(_, latency)| latency.as_secs_f64() * 1e3).collect();
    latencies.sort_by(f64::total_cmp);
    let seconds = load.begun.elapsed().as_secs_f64();
    let events: u64 = taken.iter().flatten().map(|(events, _)| events).sum();
    Ok(Sent {
        events_per_second: events as f64 / seconds,
        batches_per_second: latencies.len() as f64 / seconds,
        refused: load.refused.load(Ordering::Relaxed),
        p99_ms: latencies.get(latencies.len() * 99 / 100).copied().context("no batch was taken")?,
    })
}

impl Load<'_> {
    /// One connection: the batches that were taken, each with its events and the time since it was due.
    fn run(&self, first: Duration) -> Result<Vec<(u64, Duration)>> {
        let sent = self.send(first);
        if sent.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn send(&self, first: Duration) -> Result<Vec<(u64, Duration)>> {
        let mut connection = None;
        let mut taken = Vec::new();
        let mut due = self.begun + first;
        while due < self.begun + self.duration && !self.failed.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.begun.elapsed() > self.duration {
                break;
            }
            let number = usize::try_from(self.next.fetch_add(1, Ordering::Relaxed))?;
            let packed = &self.requests[number % self.requests.len()];
            match self.send_one(&mut connection, &packed.request)? {
                200 => taken.push((packed.events, due.elapsed())),
                503 => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
                status => bail!("a batch was answered {status}"),
            }
            due = self.pause.map_or_else(Instant::now, |pause| due + pause);
        }
        Ok(taken)
    }

    /// Sends on a connection, which is opened anew where the server closed it behind a refusal.
    fn send_one(&self, connection: &mut Option<Connection>, request: &[u8]) -> Result<u16> {
        for _ in 0..2 {
            let mut open = match connection.take() {
                Some(open) => open,
                None => Connection::open(self.server)?,
            };
            if let Ok(answer) = open.send(request) {
                *connection = Some(open);
                return Ok(answer.status);
            }
        }
        bail!("twice no answer to a batch")
    }
}
