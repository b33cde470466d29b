//! Small events on a fixed schedule, with and without 1 MiB ones whose steps take half a core: the effect of the large events on the clients
//! of the small ones.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::Setup;
use harness::http::{self, Connection};
use harness::latency::latency_ms;
use harness::priority::come_last;
use harness::report::{Bar, Row, median};
use harness::server::Server;

/// Large events are searched, hashed and exploded.
const CONFIG: &str = r#"
[types.small]
routes = ["none"]

[types.large]
transform = [
  { redact = "/text", what = ["email", "ipv4"] },
  { extract = "/text", pattern = 'took (?<ms>[0-9]+) ms; $' },
  { hash = "/text", to = "/digest" },
  { drop = "/text" },
  { explode = "/rows" },
  { lower = "/rows/host" },
  { set = "/slow", to = "rows.ms > 900" },
]
routes = ["none"]

[sinks.none]
kind = "null"
"#;
const SMALL_PER_SECOND: u32 = 2_000;
const CONNECTIONS: u32 = 32;
/// The share of a core for the large ones, and the least with which the figure is meaningful.
const CORES: f64 = 0.5;
const CORES_LEAST: f64 = 0.45;
/// The greatest payload; the text is the rest next to the rows.
const LARGE_BYTES: usize = 1024 * 1024;
const ROWS: usize = 2_000;
/// Rounds whose medians count; more than elsewhere, as each figure is a percentile.
const ROUNDS_MIN: u32 = 9;
/// How much longer a client of a small event may wait.
const LATENCY_MOST: f64 = 2.0;

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(Some(CONFIG))?;
    let server = launch.ready()?;
    let large = Large { server: launch.intake, request: http::post("/ingest/event/large", &[], large().as_bytes()) };
    let mut bench = Bench { setup, server: &server, large, per_second: 1.0 };
    bench.calibrate()?;
    let mut rounds = Vec::new();
    // The first round, in which files grow, isn't counted.
    for number in 0..=setup.rounds.max(ROUNDS_MIN) {
        let round = bench.round(number.is_multiple_of(2))?;
        println!("round {number}: {round}");
        if number > 0 {
            rounds.push(round);
        }
    }
    server.stop()?;
    Ok(rows(&rounds))
}

fn rows(rounds: &[Round]) -> Vec<Row> {
    let pairs: Vec<_> = rounds.iter().map(|round| (round.with.p99_ms, round.alone.p99_ms)).collect();
    let middle: Vec<_> = rounds.iter().map(|round| (round.with.p50_ms, round.alone.p50_ms)).collect();
    let cores = Row::alone(
        "large events' part of a core",
        "",
        median(rounds.iter().map(|round| round.cores).collect()),
        Bar::AtLeast(CORES_LEAST),
    );
    vec![
        cores,
        Row::alternating(
            "p50 of 2,000 small/s with large ones, against alone",
            "ms",
            &middle,
            Bar::AtMost(LATENCY_MOST),
        ),
        Row::alternating(
            "p99 of 2,000 small/s with large ones, against alone",
            "ms",
            &pairs,
            Bar::AtMost(LATENCY_MOST),
        ),
    ]
}

/// Both loads on one server.
struct Bench<'s> {
    setup: &'s Setup,
    server: &'s Server,
    large: Large,
    /// Large events.
    per_second: f64,
}

impl Bench<'_> {
    /// Finds out how many large events a second take half a core.
    fn calibrate(&mut self) -> Result<()> {
        self.per_second = 10.0;
        for _ in 0..3 {
            let before = self.server.process.cpu()?;
            let begun = Instant::now();
            let over = AtomicBool::new(false);
            let large = &self.large;
            thread::scope(|scope| -> Result<()> {
                let sender = scope.spawn(|| large.send(self.per_second, &over));
                thread::sleep(self.setup.duration.min(Duration::from_secs(2)));
                over.store(true, Ordering::Relaxed);
                join(sender)
            })?;
            self.adjust((self.server.process.cpu()? - before).as_secs_f64() / begun.elapsed().as_secs_f64());
        }
        println!("{:.1} large events a second take half a core", self.per_second);
        Ok(())
    }

    fn adjust(&mut self, cores: f64) {
        self.per_second = (self.per_second * CORES / cores.max(0.05)).clamp(1.0, 200.0);
    }

    /// Small events alone, and together with large ones. Which comes first changes from round to round.
    fn round(&mut self, alone_first: bool) -> Result<Round> {
        let (alone, with) = if alone_first {
            let alone = self.small()?;
            (alone, self.small_with_large()?)
        } else {
            let with = self.small_with_large()?;
            (self.small()?, with)
        };
        let cores = with.cores - alone.cores;
        self.adjust(cores);
        Ok(Round { alone, with, cores })
    }

    fn small_with_large(&self) -> Result<Measured> {
        let over = AtomicBool::new(false);
        let large = &self.large;
        thread::scope(|scope| {
            let sender = scope.spawn(|| large.send(self.per_second, &over));
            let measured = self.small();
            over.store(true, Ordering::Relaxed);
            join(sender)?;
            measured
        })
    }

    fn small(&self) -> Result<Measured> {
        let before = self.server.process.cpu()?;
        let begun = Instant::now();
        let (p50_ms, p99_ms) = self.small_latency()?;
        let cores = (self.server.process.cpu()? - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        Ok(Measured { p50_ms, p99_ms, cores })
    }

    fn small_latency(&self) -> Result<(f64, f64)> {
        let mut command = Command::new(&self.setup.binary);
        command.args(["bench", "--kind", "job", "--type", "small", "--json"]);
        command.args(["--url", &format!("http://{}", self.large.server), "--connections", &CONNECTIONS.to_string()]);
        command.args(["--rate", &SMALL_PER_SECOND.to_string()]);
        command.args(["--duration", &format!("{}s", self.setup.duration.as_secs())]);
        let output = command.stderr(Stdio::inherit()).output().context("starting forebay bench")?;
        let report: Value = serde_json::from_slice(&output.stdout).context("reading what bench prints")?;
        if !output.status.success() {
            bail!("small events weren't all answered 200: {report}");
        }
        Ok((latency_ms(&report, "p50")?, latency_ms(&report, "p99")?))
    }
}

fn join(sender: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    sender.join().map_err(|_| anyhow!("the client of large events panicked"))?
}

/// The client of the large events.
struct Large {
    server: SocketAddr,
    request: Vec<u8>,
}

impl Large {
    /// Sends at a fixed rate, until it is over. Where the server takes longer it has none in hand but one.
    fn send(&self, per_second: f64, over: &AtomicBool) -> Result<()> {
        come_last()?;
        let mut connection = Connection::open(self.server)?;
        let mut due = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let answer = connection.send(&self.request).context("sending a large event")?;
            if answer.status != 200 {
                bail!("a large event was answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            }
            due = (due + Duration::from_secs_f64(1.0 / per_second)).max(Instant::now() - Duration::from_millis(200));
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// 1 MiB: rows, and a text of log lines.
fn large() -> String {
    let row = |number: usize| {
        format!("{{\"id\":{number},\"host\":\"WEB-{:02}.example.org\",\"ms\":{}}}", number % 40, number * 37 % 1000)
    };
    let rows = (0..ROWS).map(row).collect::<Vec<_>>().join(",");
    let mut text = String::new();
    let mut number = 0_u64;
    while rows.len() + text.len() < LARGE_BYTES - 200 {
        let (first, last) = (number * 7919 % 256, number % 256);
        text.push_str(&format!("request {number} of 192.0.{first}.{last} by user{number}@example.org took 17 ms; "));
        number += 1;
    }
    format!("{{\"rows\":[{rows}],\"text\":\"{text}\"}}")
}

/// The results of one load of small events.
struct Measured {
    p50_ms: f64,
    p99_ms: f64,
    /// The server's processor time for both, in cores.
    cores: f64,
}

struct Round {
    alone: Measured,
    with: Measured,
    /// The results of the large events.
    cores: f64,
}

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { alone, with, cores } = self;
        let of = |measured: &Measured| format!("p50 {:.2}, p99 {:.2} ms", measured.p50_ms, measured.p99_ms);
        write!(f, "alone {}; with large ones {}; these took {cores:.2} of a core", of(alone), of(with))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_event_is_json_of_a_mebibyte() {
        let payload = large();
        let value: Value = serde_json::from_str(&payload).unwrap();
        assert_eq!(value["rows"].as_array().unwrap().len(), ROWS);
        assert!((LARGE_BYTES * 99 / 100..=LARGE_BYTES).contains(&payload.len()), "{}", payload.len());
    }
}
