//! Requests that a bridge passes to a service over NATS: a fixed answer against `GET /ip`, and events by their ids, which the same server
//! answers on the bus, against request and reply between two programs over nats.go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

use super::Setup;
use super::reads;
use harness::bus_worker;
use harness::http;
use harness::report::{Bar, Row};
use harness::server::{Process, READY_LIMIT};
use harness::wait::until;
use harness::workspace::{self, has_program, root};
use harness::wrk::{self, RequestsReport};
use testkit::nats::NatsServer;

/// The peer's program, within the repository.
const PEER: &str = "bench/peers/go-request-reply";
const CONNECTIONS: [u32; 2] = [64, 256];
/// About as long as an event.
const FIXED: [u8; 300] = [b'y'; 300];

const FIXED_LEAST: f64 = 0.3;
const EVENTS_LEAST: f64 = 0.3;
const P99_MOST: f64 = 8.0;
/// What the article measured on 18 cores, with its services on separate machines.
const ARTICLE: (f64, f64) = (18_000.0, 12.5);

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let nats = NatsServer::start();
    let (Some(nats), true) = (nats, has_program("go")) else {
        println!("left out: NATS or Go is missing; nothing was measured");
        return Ok(Vec::new());
    };
    let url = format!("nats://{}", nats.address());
    let launch = setup.fresh_server(Some(&configuration(&url)))?;
    let server = launch.ready()?;
    let events = reads::requests(launch.intake, |id| format!("/event {id}"))?;
    let peer = Peer::start(setup, &url)?;
    let is_over = AtomicBool::new(false);
    let rows = thread::scope(|scope| {
        scope.spawn(|| {
            bus_worker::run(nats.address(), "bench.fixed", &is_over, |request, replies| replies.send(request, &FIXED));
        });
        let bench = BridgeBench { setup, server: launch.intake, peer };
        let rows = bench.measure(&events);
        is_over.store(true, Ordering::Relaxed);
        rows
    })?;
    server.stop()?;
    Ok(rows)
}

fn configuration(url: &str) -> String {
    let bridge = |path: &str, method: &str, subject: &str| {
        format!("[[bridge]]\npath = \"{path}\"\nsubject = \"{subject}\"\nmethods = [\"{method}\"]\n\n")
    };
    format!(
        "[types.\"*\"]\nroutes = [\"store\"]\n\n[sinks.store]\nkind = \"sqlite\"\n\n[bus]\nurl = \"{url}\"\n\n\
         [bus.events]\nsubject = \"bench.events\"\n\n{}{}",
        bridge("/fixed", "GET", "bench.fixed"),
        bridge("/event", "POST", "bench.events"),
    )
}

/// The server and its peer, loaded one after the other.
struct BridgeBench<'a> {
    setup: &'a Setup,
    server: SocketAddr,
    peer: Peer,
}

impl BridgeBench<'_> {
    fn measure(&self, events: &str) -> Result<Vec<Row>> {
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = self.setup.folder.join(name).with_extension("requests");
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let (ip, fixed, events) = (file("ip", "/ip\n")?, file("fixed", "/fixed\n")?, file("events", events)?);
        until("a worker answers", READY_LIMIT, || Ok(http::get(self.server, "/fixed")?.status == 200))?;
        let (mut rows, mut refused) = (Vec::new(), 0);
        for connections in CONNECTIONS {
            let (mut fixed_rates, mut rates, mut p99s) = (Vec::new(), Vec::new(), Vec::new());
            // In the first round connections are opened and caches filled.
            for round in 0..=self.setup.rounds {
                let mut load = |file: &PathBuf| -> Result<RequestsReport> {
                    let report = wrk::requests(self.server, file, connections, self.setup.duration)?;
                    refused += report.refused;
                    Ok(report)
                };
                let (ip, fixed, events) = (load(&ip)?, load(&fixed)?, load(&events)?);
                let (rate, p99) = self.peer.request(connections, self.setup.duration.as_secs())?;
                println!(
                    "{connections}, round {round}: {ip:.1?}; {fixed:.1?}; {events:.1?}; peer {rate:.0}/s, p99 {p99:.2} ms"
                );
                if round > 0 {
                    fixed_rates.push((fixed.answered_per_second, ip.answered_per_second));
                    rates.push((events.answered_per_second, rate));
                    p99s.push((events.p99_ms, p99));
                }
            }
            let of_article =
                |figures: &[(f64, f64)], article| figures.iter().map(|(ours, _)| (*ours, article)).collect::<Vec<_>>();
            let mut row = |what: &str, unit, pairs: &[(f64, f64)], bar| {
                rows.push(Row::alternating(&format!("{what}, {connections} clients"), unit, pairs, bar));
            };
            row("fixed answer, against GET /ip", "/s", &fixed_rates, Bar::AtLeast(FIXED_LEAST));
            row("event from SQLite, against nats.go", "/s", &rates, Bar::AtLeast(EVENTS_LEAST));
            // More clients than 64 only wait longer.
            let p99_most = if connections == CONNECTIONS[0] { P99_MOST } else { f64::INFINITY };
            row("p99 of it, against nats.go", "ms", &p99s, Bar::AtMost(p99_most));
            row("event from SQLite, against the article", "/s", &of_article(&rates, ARTICLE.0), Bar::AtLeast(0.0));
            row("p99 of it, against the article", "ms", &of_article(&p99s, ARTICLE.1), Bar::AtMost(f64::INFINITY));
        }
        rows.push(Row::alone("requests with another answer than 200", "requests", refused as f64, Bar::AtMost(0.0)));
        Ok(rows)
    }
}

/// Two programs over nats.go: one that answers, and one that is started for each load.
struct Peer {
    program: PathBuf,
    url: String,
    _replies: Process,
}

impl Peer {
    fn start(setup: &Setup, url: &str) -> Result<Self> {
        let program = setup.folder.join("go-request-reply");
        let mut go = Command::new("go");
        go.args(["build", "-C", PEER, "-o"]).arg(&program).arg(".").current_dir(root()?).env("CGO_ENABLED", "0");
        workspace::run(&mut go).context("building the peer with Go, which fetches nats.go")?;
        let replies = Process::start(Command::new(&program).args(["reply", "-url", url]).stdin(Stdio::null()))?;
        let peer = Self { program, url: url.to_owned(), _replies: replies };
        until("the peer answers", READY_LIMIT, || Ok(peer.request(1, 0).is_ok()))?;
        Ok(peer)
    }

    /// Answers a second, and the 99th percentile in milliseconds.
    fn request(&self, flight: u32, seconds: u64) -> Result<(f64, f64)> {
        let mut command = Command::new(&self.program);
        command.args(["request", "-url", &self.url, "-flight", &flight.to_string(), "-seconds", &seconds.to_string()]);
        let printed = workspace::output(&mut command)?;
        let figures =
            printed.trim().split_once(' ').and_then(|(rate, p99)| Some((rate.parse().ok()?, p99.parse().ok()?)));
        figures.with_context(|| format!("the peer printed {printed:?}"))
    }
}
