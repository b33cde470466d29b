//! A dead sink and two healthy ones: its effect on the healthy ones' clients, while its backlog grows and when it
//! is full. The same load goes alternately to a server with three healthy sinks.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::Setup;
use harness::http::{self, Connection};
use harness::latency::latency_ms;
use harness::report::{Bar, Row};
use harness::server::{Launch, READY_LIMIT, Server};
use harness::wait::until;
use harness::workspace;

/// Each has a type and a sink of its name; the last is the one that dies.
const NAMES: [&str; 3] = ["one", "two", "three"];
const DEAD: &str = NAMES[2];
/// The share of the peak at which latency is measured.
const NORMAL: f64 = 0.25;
const CONNECTIONS: u32 = 64;
/// Rounds whose medians count; more than elsewhere, and shorter, as each figure is a percentile: a moment in which the machine
/// stalls spoils its round, and should spoil few.
const ROUNDS_MIN: u32 = 25;
const ROUND_MAX: Duration = Duration::from_secs(2);
/// So little that the dead sink exceeds it by the time that it is in use.
const FULL_BACKLOG: &str = "1MiB";
/// How much longer a client of a healthy sink may wait.
const LATENCY_MOST: f64 = 1.1;

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let rounds = setup.rounds.max(ROUNDS_MIN);
    let healthy = TestedServer::start(setup, "healthy", false)?;
    let dead = TestedServer::start(setup, "dead", true)?;
    let peak = healthy.peak(setup)?;
    healthy.server.wait_stored()?;
    let rate = peak * NORMAL;
    println!("peak {peak:.0} events/s; {rate:.0}/s of them alternately on both servers");
    let mut rows = Vec::new();

    let growing = alternating(setup, &healthy, &dead, rate, rounds)?;
    expect_no_rejection(&growing, "while the backlog grows")?;
    rows.extend(growing.rows("backlog grows"));

    dead.launch.write_config(&config(Some(FULL_BACKLOG)))?;
    dead.server.hang_up()?;
    dead.wait_full()?;
    let full = alternating(setup, &healthy, &dead, rate, rounds)?;
    rows.extend(full.rows("backlog full"));
    rows.push(share("backlog full: healthy types' requests rejected", full.refused(false), Bar::AtMost(0.0)));
    rows.push(share("backlog full: its own type's requests rejected", full.refused(true), Bar::AtLeast(1.0)));

    healthy.server.wait_stored()?;
    healthy.server.stop()?;
    dead.server.kill()?;
    Ok(rows)
}

fn share(what: &str, measured: f64, bar: Bar) -> Row {
    Row::alone(what, "", measured, bar)
}

/// A type and a SQLite file for each name.
fn config(backlog: Option<&str>) -> String {
    let limit = backlog.map_or_else(String::new, |bytes| format!("max_backlog = \"{bytes}\"\n"));
    let of = |name: &&str| {
        let limit = if *name == DEAD { limit.as_str() } else { "" };
        format!(
            "[types.{name}]\nroutes = [\"{name}\"]\n[sinks.{name}]\nkind = \"sqlite\"\npath = \"{name}.db\"\n{limit}"
        )
    };
    NAMES.iter().map(of).collect()
}

/// One of the two servers.
struct TestedServer {
    launch: Launch,
    server: Server,
}

impl TestedServer {
    fn start(setup: &Setup, name: &str, is_dead: bool) -> Result<Self> {
        let folder = setup.folder.join(name);
        workspace::empty_directory(&folder)?;
        let launch = Launch::new(&setup.binary, &folder, Some(&config(None)))?;
        if is_dead {
            // A directory with the name of its database.
            let blocker = launch.data.join(format!("{DEAD}.db")).join("in-the-way");
            std::fs::create_dir_all(&blocker).with_context(|| format!("creating {}", blocker.display()))?;
        }
        let server = launch.ready()?;
        Ok(Self { launch, server })
    }

    /// Events a second of all types together.
    fn peak(&self, setup: &Setup) -> Result<f64> {
        let loads = load(setup, self.launch.intake, None, setup.duration)?;
        Ok(loads.iter().map(|load| load.events_per_second).sum())
    }

    /// Waits until the dead sink's type is rejected.
    fn wait_full(&self) -> Result<()> {
        let request = http::post(&format!("/ingest/event/{DEAD}"), &[], b"1");
        until("events for the dead sink are rejected", READY_LIMIT, || {
            Ok(Connection::open(self.launch.intake)?.send(&request)?.status == 503)
        })
    }
}

/// The results of one load on one type.
struct Measured {
    events_per_second: f64,
    requests: f64,
    refused: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// All types at the same time, each with a separate client.
fn load(setup: &Setup, server: SocketAddr, rate: Option<f64>, duration: Duration) -> Result<Vec<Measured>> {
    let clients: Vec<Child> =
        NAMES.iter().map(|name| start_client(setup, server, name, rate, duration)).collect::<Result<_>>()?;
    clients.into_iter().map(measured).collect()
}

fn start_client(setup: &Setup, server: SocketAddr, name: &str, rate: Option<f64>, duration: Duration) -> Result<Child> {
    let mut command = Command::new(&setup.binary);
    command.args(["bench", "--kind", "job", "--json", "--type", name, "--url", &format!("http://{server}")]);
    command.args(["--connections", &CONNECTIONS.to_string(), "--duration", &format!("{}s", duration.as_secs())]);
    if let Some(rate) = rate {
        command.args(["--rate", &format!("{:.0}", rate / NAMES.len() as f64)]);
    }
    command.stdout(Stdio::piped()).spawn().context("starting bench")
}

fn measured(client: Child) -> Result<Measured> {
    // It exits with 3 if a request was rejected, as the dead sink's type has to be.
    let output = client.wait_with_output().context("waiting for bench")?;
    let report: Value = serde_json::from_slice(&output.stdout).context("reading what bench prints")?;
    let number = |name: &str| report[name].as_f64().ok_or_else(|| anyhow!("bench prints no {name}"));
    let answers = report["answers"].as_object().context("bench prints the answers")?;
    if let Some((status, count)) = answers.iter().find(|(status, _)| !matches!(status.as_str(), "200" | "503")) {
        bail!("{count} requests were answered {status}");
    }
    Ok(Measured {
        events_per_second: number("events_per_second")?,
        requests: number("requests")?,
        refused: answers.get("503").and_then(Value::as_f64).unwrap_or(0.0),
        p50_ms: latency_ms(&report, "p50")?,
        p99_ms: latency_ms(&report, "p99")?,
    })
}

/// A round: the server with the dead sink, and the healthy one.
struct Round {
    dead: Vec<Measured>,
    healthy: Vec<Measured>,
}

struct Rounds(Vec<Round>);

/// Which of them is first changes from round to round. The first round, in which files grow, isn't counted.
fn alternating(setup: &Setup, healthy: &TestedServer, dead: &TestedServer, rate: f64, rounds: u32) -> Result<Rounds> {
    let duration = setup.duration.min(ROUND_MAX);
    let measure = |server: &TestedServer| load(setup, server.launch.intake, Some(rate), duration);
    let mut measured = Vec::new();
    for number in 0..=rounds {
        let round = if number % 2 == 0 {
            let healthy = measure(healthy)?;
            Round { dead: measure(dead)?, healthy }
        } else {
            let dead = measure(dead)?;
            Round { dead, healthy: measure(healthy)? }
        };
        healthy.server.wait_stored()?;
        if number > 0 {
            measured.push(round);
        }
    }
    Ok(Rounds(measured))
}

fn expect_no_rejection(rounds: &Rounds, when: &str) -> Result<()> {
    if rounds.refused(true) + rounds.refused(false) > 0.0 {
        bail!("requests were rejected {when}");
    }
    Ok(())
}

impl Rounds {
    fn rows(&self, when: &str) -> [Row; 2] {
        [("p50", Self::p50 as fn(&Measured) -> f64), ("p99", Self::p99)].map(|(name, of)| {
            let of_healthy = |load: &[Measured]| load.iter().take(NAMES.len() - 1).map(of).sum::<f64>() / 2.0;
            let pairs: Vec<_> =
                self.0.iter().map(|round| (of_healthy(&round.dead), of_healthy(&round.healthy))).collect();
            let what = format!("{when}: {name} of the healthy types, against three healthy sinks");
            Row::alternating(&what, "ms", &pairs, Bar::AtMost(LATENCY_MOST))
        })
    }

    fn p50(load: &Measured) -> f64 {
        load.p50_ms
    }

    fn p99(load: &Measured) -> f64 {
        load.p99_ms
    }

    /// The share of the requests to the server with the dead sink that were rejected: those of its type, or the others.
    fn refused(&self, of_dead: bool) -> f64 {
        let loads = self.0.iter().flat_map(|round| round.dead.iter().zip(NAMES));
        let chosen: Vec<_> = loads.filter(|(_, name)| (*name == DEAD) == of_dead).map(|(load, _)| load).collect();
        let sum = |of: fn(&Measured) -> f64| chosen.iter().map(|load| of(load)).sum::<f64>();
        sum(|load| load.refused) / sum(|load| load.requests)
    }
}
