//! A gateway and a writer (`null`), against a front-end and a back-end in Go that decode and encode JSON and make nothing
//! durable. Both pairs run all the time and are loaded alternately.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Setup;
use harness::ab;
use harness::metrics;
use harness::report::{Bar, Row, median};
use harness::server::{Process, READY_LIMIT};
use harness::two_services::{Pair, SinkSpec};
use harness::wait::until;
use harness::workspace::{self, has_program, root};
use harness::wrk::{self, WrkLoad};
use testkit::ports::free_address;

const DISCARDED: SinkSpec<'_> = SinkSpec { name: "none", settings: "kind = \"null\"\n" };
/// The peer's program, within the repository.
const PEER: &str = "bench/peers/go-front-back";
const PEER_PATH: &str = "/ingest/data";
/// Connections of wrk.
const CONNECTIONS: [u32; 2] = [64, 256];
/// Requests and connections of ab.
const FIXED: [ab::AbLoad; 3] = [
    ab::AbLoad { requests: 10_000, connections: 50 },
    ab::AbLoad { requests: 10_000, connections: 100 },
    ab::AbLoad { requests: 100_000, connections: 300 },
];

const RATE_LEAST: f64 = 3.0;
const PENDING_MOST: f64 = 0.05;
/// By then all that was accepted is delivered.
const DELIVERED_WITHIN: Duration = Duration::from_secs(5);

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let Some(peer) = Peer::start(setup)? else {
        println!("left out: Go is missing, which the peer is built with; nothing was measured");
        return Ok(Vec::new());
    };
    let folder = setup.folder.join("pair");
    workspace::empty_directory(&folder)?;
    let bench = Hop { setup, pair: Pair::start(&setup.binary, &folder, DISCARDED)?, peer };
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        rows.extend(bench.by_wrk(connections)?);
    }
    if has_program("ab") {
        let body = setup.folder.join("job_status.json");
        std::fs::write(&body, wrk::BODY).with_context(|| format!("writing {}", body.display()))?;
        for load in FIXED {
            rows.extend(bench.by_ab(load, &body)?);
        }
    } else {
        println!("left out: ab is missing, which `cargo xtask services` installs");
    }
    bench.pair.stop()?;
    Ok(rows)
}

/// The pairs that are compared.
struct Hop<'a> {
    setup: &'a Setup,
    pair: Pair,
    peer: Peer,
}

/// The results of one load on one pair.
struct Measured {
    requests_per_second: f64,
    /// User and system microseconds of a request, in both processes.
    cpu: f64,
    /// Resident megabytes of both when the load ended.
    memory: f64,
}

/// One load on each pair.
struct Round {
    pair: Measured,
    peer: Measured,
    /// Share of the accepted events that was pending when the load ended.
    pending: f64,
    /// The rest of them 5 s later.
    left: f64,
}

/// The counters of a pair before a load.
struct Before {
    accepted: f64,
    cpu: Duration,
}

impl Hop<'_> {
    fn by_wrk(&self, connections: u32) -> Result<Vec<Row>> {
        let load = WrkLoad { connections, duration: self.setup.duration, is_keyed: false };
        let mut rounds = Vec::new();
        // The first round, in which files grow and connections are opened, isn't counted.
        for round in 0..=self.setup.rounds {
            let measured = self.round(|url| {
                let report = wrk::run_on(url, load, &self.setup.folder)?;
                Ok((report.requests_per_second, report.requests))
            })?;
            println!("wrk, {connections} connections, round {round}: {}", measured.shown());
            if round > 0 {
                rounds.push(measured);
            }
        }
        Ok(rows(&format!("wrk, {connections} connections"), &rounds))
    }

    fn by_ab(&self, load: ab::AbLoad, body: &Path) -> Result<Vec<Row>> {
        let (mut rounds, mut failed) = (Vec::new(), 0);
        for round in 1..=self.setup.rounds {
            let measured = self.round(|url| {
                let report = ab::run(url, load, body)?;
                // A request of the peer that fails is a mistake of the measurement as well.
                failed += report.failed;
                Ok((report.requests_per_second, load.requests - report.failed))
            })?;
            println!("ab, {} at {}, round {round}: {}", load.requests, load.connections, measured.shown());
            rounds.push(measured);
        }
        let what = format!("ab, {} requests, {} connections", load.requests, load.connections);
        let mut rows = rows(&what, &rounds);
        rows.push(Row::alone(&format!("{what}: failed"), "requests", failed as f64, Bar::AtMost(0.0)));
        Ok(rows)
    }

    /// Loads the peer, and right after it the pair. `load` posts to a URL, and says how many requests a second were answered, and how
    /// many in all.
    fn round(&self, mut load: impl FnMut(&str) -> Result<(f64, u64)>) -> Result<Round> {
        let before = self.peer.cpu()?;
        let (rate, requests) = load(&self.peer.url)?;
        let peer = Measured::new(rate, self.peer.cpu()? - before, requests, self.peer.memory()?);
        let before = self.before()?;
        let (rate, requests) = load(&format!("http://{}/ingest/event", self.pair.launch.intake))?;
        let memory = self.pair.memory()?;
        let text = self.pair.gateway.metrics()?;
        let accepted = metrics::sum(&text, "forebay_events_accepted_total") - before.accepted;
        if accepted < requests as f64 {
            bail!("{requests} requests were answered 200, but the gateway accepted {accepted} events");
        }
        let pending = metrics::sum(&text, "forebay_events_pending") / accepted;
        let left = self.left()?;
        let pair = Measured::new(rate, self.pair.cpu()? - before.cpu, requests, memory);
        Ok(Round { pair, peer, pending, left })
    }

    fn before(&self) -> Result<Before> {
        let accepted = metrics::sum(&self.pair.gateway.metrics()?, "forebay_events_accepted_total");
        // Before the first event there is nothing to wait for, and no metric of it.
        if accepted > 0.0 {
            self.pair.gateway.wait_stored()?;
        }
        Ok(Before { accepted, cpu: self.pair.cpu()? })
    }

    /// The events that are pending once all are delivered, or the time for it is over.
    fn left(&self) -> Result<f64> {
        let ended = Instant::now();
        loop {
            let pending = self.pair.gateway.pending()?;
            if pending <= 0.0 || ended.elapsed() > DELIVERED_WITHIN {
                return Ok(pending);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Measured {
    fn new(requests_per_second: f64, cpu: Duration, requests: u64, memory: u64) -> Self {
        let cpu = cpu.as_secs_f64() * 1e6 / requests as f64;
        Self { requests_per_second, cpu, memory: memory as f64 / 1e6 }
    }

    fn shown(&self) -> String {
        let Self { requests_per_second, cpu, memory } = self;
        format!("{requests_per_second:.0}/s, {cpu:.1} µs CPU, {memory:.1} MB")
    }
}

impl Round {
    fn shown(&self) -> String {
        format!("Go {}; Forebay {}, {:.1} % pending", self.peer.shown(), self.pair.shown(), self.pending * 100.0)
    }
}

fn rows(what: &str, rounds: &[Round]) -> Vec<Row> {
    let compared = |name: &str, unit, of: fn(&Measured) -> f64, bar| {
        let pairs: Vec<_> = rounds.iter().map(|round| (of(&round.pair), of(&round.peer))).collect();
        Row::alternating(&format!("{what}: {name}"), unit, &pairs, bar)
    };
    let pending = median(rounds.iter().map(|round| round.pending).collect());
    let left = rounds.iter().map(|round| round.left).fold(0.0, f64::max);
    vec![
        compared("rate", "requests/s", |of| of.requests_per_second, Bar::AtLeast(RATE_LEAST)),
        compared("CPU of both processes", "µs/request", |of| of.cpu, Bar::AtMost(1.0)),
        compared("memory of both processes", "MB", |of| of.memory, Bar::AtMost(1.0)),
        Row::alone(&format!("{what}: pending of accepted when the load ends"), "", pending, Bar::AtMost(PENDING_MOST)),
        Row::alone(&format!("{what}: pending 5 s later, at most"), "events", left, Bar::AtMost(0.0)),
    ]
}

/// The front-end and the back-end in Go.
struct Peer {
    url: String,
    processes: [Process; 2],
}

impl Peer {
    /// Builds and starts both; none if Go is missing.
    fn start(setup: &Setup) -> Result<Option<Self>> {
        if !has_program("go") {
            return Ok(None);
        }
        let program = build(&setup.folder)?;
        let [front, back] = [free_address(), free_address()];
        let url = format!("http://{back}{PEER_PATH}");
        let back = service(&program, "back", back, &[])?;
        let processes = [service(&program, "front", front, &["-back", &url])?, back];
        Ok(Some(Self { url: format!("http://{front}{PEER_PATH}"), processes }))
    }

    fn cpu(&self) -> Result<Duration> {
        self.processes.iter().map(Process::cpu).sum()
    }

    fn memory(&self) -> Result<u64> {
        self.processes.iter().map(|process| Ok(process.memory()?.now)).sum()
    }
}

/// Builds the peer. It needs nothing but Go's own library, so nothing is fetched.
fn build(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("go-front-back");
    let mut go = Command::new("go");
    go.args(["build", "-C", PEER, "-o"]).arg(&program).arg(".").current_dir(root()?);
    go.env("GOPROXY", "off").env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
    workspace::run(&mut go).context("building the peer with Go")?;
    Ok(program)
}

/// Starts one of the peer's services, and waits until it listens.
fn service(program: &Path, name: &str, listen: SocketAddr, arguments: &[&str]) -> Result<Process> {
    let mut command = Command::new(program);
    command.arg(name).args(["-listen", &listen.to_string()]).args(arguments).stdin(Stdio::null());
    let mut process = Process::start(&mut command)?;
    until("the peer listens", READY_LIMIT, || match process.ended()? {
        Some(status) => bail!("the peer's {name}-end ended with {status} before it listened on {listen}"),
        None => Ok(TcpStream::connect(listen).is_ok()),
    })?;
    Ok(process)
}
