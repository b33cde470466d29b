//! Ten times the server's peak load, on a fixed schedule: it continues at its own pace, rejects the rest immediately, keeps its
//! memory, and is as before afterwards.
//!
//! Server and client have separate cores, as if each were a machine: offering ten times the load costs the server no time of its core.
//! The peak is measured for as long as the overload, on a server that also begins empty: a disk and a store
//! that are written to for two minutes are slower than for ten seconds.

mod batches;
mod memory;
mod singles;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use self::batches::Batches;
use self::memory::Memory;
use self::singles::Singles;
use super::Setup;
use super::records::Records;
use crate::cores::{Side, on_core_of};
use harness::report::{Bar, Row, median};
use harness::server::Server;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// How long each overload lasts, and each peak, in seconds.
    #[arg(long, default_value_t = 120)]
    overload_seconds: u64,
    /// One kind of load alone.
    #[arg(long)]
    only: Option<Kind>,
}

/// The kind of load.
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
/// The most that all bytes in flight, connections and caches may use together.
const MEMORY_MB_MAX: f64 = 256.0;

/// When requests are sent.
#[derive(Clone, Copy)]
enum Pace {
    /// Each as soon as the one before it on its connection is answered.
    AsAnswered,
    /// So many a second, regardless of the answers.
    Scheduled(f64),
}

/// Requests of one kind.
trait Load {
    const WHAT: &'static str;

    fn send(&self, server: SocketAddr, pace: Pace, duration: Duration) -> Result<Sent>;
}

/// The outcome of a load.
#[derive(Clone, Copy)]
struct Sent {
    /// Events that were acknowledged, a second.
    events: f64,
    /// Requests that were accepted, a second.
    requests: f64,
    /// Requests that were rejected with 503, a second.
    refused: f64,
    /// From when a request was due to its answer, of those that were accepted.
    p99_ms: f64,
}

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let length = Duration::from_secs(options.overload_seconds.max(4));
    let wanted = |kind| options.only.is_none_or(|only| only == kind);
    let mut rows = Vec::new();
    if wanted(Kind::Singles) {
        rows.extend(measure(setup, &Singles { binary: &setup.binary }, length)?);
    }
    if wanted(Kind::Batches) {
        rows.extend(measure(setup, &Batches::pack(&setup.folder, &options.records.pieces()?)?, length)?);
    }
    Ok(rows)
}

fn measure<L: Load + Sync>(setup: &Setup, load: &L, length: Duration) -> Result<Vec<Row>> {
    let peak = on_fresh_server(setup, |_, intake| load.send(intake, Pace::AsAnswered, length))?;
    on_fresh_server(setup, |server, intake| {
        let normal = || p99_of(load, intake, peak.requests * NORMAL, setup);
        let before = normal()?;
        let overload = || load.send(intake, Pace::Scheduled(peak.requests * OVERLOAD), length);
        let (during, memory) = memory::watched(server, overload)?;
        println!(
            "{}: peak {:.0} requests/s; ten times overloaded {:.0}/s accepted, {:.0}/s rejected",
            L::WHAT,
            peak.requests,
            during.requests,
            during.refused
        );
        thread::sleep(RECOVERY);
        Ok(rows::<L>((during, peak), memory, (normal()?, before)))
    })
}

/// The 99th percentile at a rate: the median of some rounds, since a short stall of a store determines that of one round.
fn p99_of<L: Load>(load: &L, server: SocketAddr, rate: f64, setup: &Setup) -> Result<f64> {
    let rounds = (0..setup.rounds).map(|_| Ok(load.send(server, Pace::Scheduled(rate), setup.duration)?.p99_ms));
    Ok(median(rounds.collect::<Result<_>>()?))
}

/// Has `load` meet a server with an empty data directory, from another core.
fn on_fresh_server<T>(setup: &Setup, load: impl FnOnce(&Server, SocketAddr) -> Result<T>) -> Result<T> {
    let launch = setup.fresh_server(None)?;
    let server = on_core_of(Side::Server, || launch.ready())?;
    let done = on_core_of(Side::Client, || load(&server, launch.intake))?;
    server.wait_stored()?;
    server.stop()?;
    Ok(done)
}

fn rows<L: Load>(goodput: (Sent, Sent), memory: Memory, latency: (f64, f64)) -> Vec<Row> {
    let row =
        |what: &str, unit, pair: (f64, f64), bar| Row::alternating(&format!("{}, {what}", L::WHAT), unit, &[pair], bar);
    let megabytes = |bytes: f64| bytes / 1e6;
    vec![
        row(
            "ten times overloaded, against the peak",
            "events/s",
            (goodput.0.events, goodput.1.events),
            Bar::AtLeast(0.9),
        ),
        Row::alone(
            &format!("{}, most memory under overload", L::WHAT),
            "MB",
            megabytes(memory.most),
            Bar::AtMost(MEMORY_MB_MAX),
        ),
        row(
            "memory in the last quarter of it, against the first",
            "MB",
            (megabytes(memory.last_quarter), megabytes(memory.first_quarter)),
            Bar::AtMost(1.1),
        ),
        row("p99 5 s after it, against before", "ms", latency, Bar::AtMost(2.0)),
    ]
}
