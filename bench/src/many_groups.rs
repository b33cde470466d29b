//! A million groups in one window: their memory against the same events without an aggregate, with a budget that fits all
//! and with too small a one, and the delay of another aggregate.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail};

use super::Setup;
use super::batch::{self, Until};
use crate::reference::check_loop::Piece;
use harness::http::{self, Connection};
use harness::metrics;
use harness::report::{Bar, Row};
use harness::server::Server;
use harness::wait::until;

#[derive(clap::Args)]
pub(super) struct Options {
    /// Groups, each with one event.
    #[arg(long, default_value_t = 1_000_000)]
    groups: u64,
}

/// The memory of the groups: with room for all of a million, and with too little.
const BUDGETS_MIB: [u64; 2] = [1024, 64];
const BATCH: u64 = 20_000;
/// On so many connections each shard has one.
const CONNECTIONS: usize = 16;
/// The longest delay of another aggregate, in seconds.
const WAIT_MOST: f64 = 1.0;
const DONE_LIMIT: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);
const WINDOW_END: &str = "2026-01-01T12:30:00Z";

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let without = Seen::of(setup, options, None)?;
    println!("without an aggregate: {without}");
    let mut rows = Vec::new();
    for budget in BUDGETS_MIB {
        let seen = Seen::of(setup, options, Some(budget))?;
        println!("{budget} MiB: {seen}");
        seen.check(options, budget)?;
        rows.extend(seen.rows(&without, budget));
    }
    Ok(rows)
}

fn config(budget: Option<u64>) -> String {
    let groups = budget.map_or_else(String::new, |mib| {
        format!(
            "[types.visit.aggregate.users]\nwindow = \"1h\"\ngroup_by = [\"/user\"]\n\
             measures = {{ visits = \"count\", bytes = \"sum:/bytes\" }}\nlateness = \"0s\"\nmemory = \"{mib}MiB\"\n\
             routes = [\"none\"]\n"
        )
    });
    format!(
        "[types.visit]\ntime = \"/time\"\nroutes = [\"none\"]\n{groups}\
         [types.pulse]\nroutes = [\"none\"]\n[types.pulse.aggregate.beats]\nwindow = \"1s\"\ntime = \"received\"\n\
         measures = {{ beats = \"count\" }}\nroutes = [\"none\"]\n[sinks.none]\nkind = \"null\"\n"
    )
}

/// The figures of a server.
struct Seen {
    idle: u64,
    most: u64,
    /// Figures of the aggregate when all groups were there.
    groups: f64,
    counted: f64,
    limit: f64,
    overflowed: f64,
    /// Results in the end.
    results: f64,
    /// The longest time for which the other aggregate lagged, in seconds.
    waited: f64,
    took: Duration,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (idle, most, counted) = (megabytes(self.idle), megabytes(self.most), self.counted / 1e6);
        let Self { groups, overflowed, results, waited, took, .. } = self;
        write!(
            f,
            "{groups} groups, {counted:.1} MB of them counted, {overflowed} events in the overflow group; {idle:.1} MB before, \
             {most:.1} MB at most; {results} results after {:.1} s; another aggregate's delay: {waited:.2} s",
            took.as_secs_f64()
        )
    }
}

impl Seen {
    fn of(setup: &Setup, options: &Options, budget: Option<u64>) -> Result<Self> {
        let launch = setup.fresh_server(Some(&config(budget)))?;
        let server = launch.ready()?;
        sleep(Duration::from_secs(1));
        let idle = server.process.memory()?.now;
        server.process.forget_peak()?;
        let begun = Instant::now();
        let (over, waited) = (AtomicBool::new(false), Mutex::new(0.0_f64));
        let mut seen = thread::scope(|scope| {
            let pulse = scope.spawn(|| pulse(launch.intake, &server, &over, &waited));
            let seen = Self::of_groups(&server, launch.intake, options, budget.is_some());
            over.store(true, Ordering::Relaxed);
            pulse.join().map_err(|_| anyhow!("the client of the other aggregate panicked"))??;
            seen
        })?;
        seen.idle = idle;
        seen.most = server.process.memory()?.most;
        seen.took = begun.elapsed();
        seen.waited = waited.into_inner().unwrap_or(f64::NAN);
        server.stop()?;
        Ok(seen)
    }

    fn of_groups(server: &Server, intake: SocketAddr, options: &Options, has_groups: bool) -> Result<Self> {
        batch::send(intake, &batches(options.groups), 1, Until::Sent(options.groups))?;
        let figure = |text: &str, name: &str| {
            metrics::sum(text, &format!("forebay_aggregate_{name}{{aggregate=\"visit.users\"}}"))
        };
        if has_groups {
            until("the aggregate is there", DONE_LIMIT, || {
                Ok(figure(&server.metrics()?, "events_total") >= options.groups as f64)
            })?;
        }
        let text = server.metrics()?;
        end_window(intake)?;
        if has_groups {
            until("the aggregate is there", DONE_LIMIT, || {
                let text = server.metrics()?;
                Ok(figure(&text, "groups") < 100.0 && figure(&text, "results_total") > 0.0)
            })?;
        }
        server.wait_stored()?;
        let after = server.metrics()?;
        Ok(Self {
            idle: 0,
            most: 0,
            groups: figure(&text, "groups"),
            counted: figure(&text, "memory_bytes"),
            limit: figure(&text, "memory_limit_bytes"),
            overflowed: figure(&after, "overflowed_total"),
            results: figure(&after, "results_total"),
            waited: 0.0,
            took: Duration::ZERO,
        })
    }

    /// Whether the metrics agree with the events sent.
    fn check(&self, options: &Options, budget: u64) -> Result<()> {
        let all = options.groups as f64;
        let is_whole = self.overflowed < 1.0;
        if (self.limit - mib(budget)).abs() > 0.5 {
            bail!("metrics say that the budget is {} bytes, and it is {budget} MiB", self.limit);
        }
        if is_whole && self.groups < all || !is_whole && self.groups >= all {
            bail!("{} groups of {all}, and {} events in the overflow group", self.groups, self.overflowed);
        }
        Ok(())
    }

    fn rows(&self, without: &Self, budget: u64) -> [Row; 3] {
        let more = (self.most - self.idle) as f64 - (without.most - without.idle) as f64;
        let row = |what: &str, measured: f64, unit: &'static str, most: f64| {
            Row::alone(&format!("{budget} MiB: {what}"), unit, measured, Bar::AtMost(most))
        };
        [
            row("more in memory than without", more / 1e6, "MB", mib(budget) / 1e6),
            row("counted in metrics", self.counted / 1e6, "MB", mib(budget) / 1e6),
            row("another aggregate lags behind", self.waited, "s", without.waited.max(WAIT_MOST)),
        ]
    }
}

fn mib(count: u64) -> f64 {
    (count * 1024 * 1024) as f64
}

fn batches(groups: u64) -> Vec<batch::Batch> {
    let piece = |first: u64| {
        let mut lines = String::new();
        let last = (first + BATCH).min(groups);
        for number in first..last {
            let _ = writeln!(
                lines,
                "{{\"type\":\"visit\",\"time\":\"2026-01-01T10:{:02}:00Z\",\"user\":\"user{number}\",\"bytes\":{number}}}",
                number * 60 / groups
            );
        }
        Piece { bytes: lines.into_bytes(), events: last - first }
    };
    let pieces: Vec<_> = (0..groups).step_by(usize::try_from(BATCH).unwrap_or(1)).map(piece).collect();
    batch::batches_of_type("visit", &pieces)
}

/// Says to each shard that the window is over.
fn end_window(server: SocketAddr) -> Result<()> {
    let request =
        http::post("/ingest/event/visit", &[], format!("{{\"time\":\"{WINDOW_END}\",\"user\":\"end\"}}").as_bytes());
    let mut connections = (0..CONNECTIONS).map(|_| Connection::open(server)).collect::<std::io::Result<Vec<_>>>()?;
    connections.iter_mut().try_for_each(|connection| match connection.send(&request)?.status {
        200 => Ok(()),
        status => bail!("the end of the window was answered {status}"),
    })
}

/// Events of another type all the time; the metrics show its aggregate's greatest lag.
fn pulse(server: SocketAddr, seen_by: &Server, over: &AtomicBool, waited: &Mutex<f64>) -> Result<()> {
    let request = http::post("/ingest/event/pulse", &[], b"{}");
    let mut connections = (0..CONNECTIONS).map(|_| Connection::open(server)).collect::<std::io::Result<Vec<_>>>()?;
    let begun = Instant::now();
    while !over.load(Ordering::Relaxed) {
        for connection in &mut connections {
            let status = connection.send(&request).context("sending a pulse")?.status;
            if status != 200 {
                bail!("a pulse was answered {status}");
            }
        }
        let watermark =
            metrics::sum(&seen_by.metrics()?, "forebay_aggregate_watermark_seconds{aggregate=\"pulse.beats\"}");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64();
        // Before it has seen any it says 0.
        if let (Ok(mut waited), true) = (waited.lock(), watermark > 0.0 || begun.elapsed() > Duration::from_secs(1)) {
            *waited = waited.max(now - watermark);
        }
        sleep(PAUSE);
    }
    Ok(())
}
