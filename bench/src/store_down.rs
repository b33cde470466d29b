//! A store is down while millions of events arrive for it. Measures the time until events of the other stores are stored, the server's memory,
//! how fast the backlog drains when the store is back, and the cost of failed attempts.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use harness::clients::with_clients;
use harness::metrics;
use harness::open_loop::{AckLevel, OpenLoop, PATIENT, Sample};
use harness::report::{self, Bar, Row};
use harness::server::{Launch, PATIENCE, Server};
use harness::store::{Purpose, RunningStore, SERVERS};
use harness::workspace;
use latency::Latency;

mod latency;

#[derive(clap::Args)]
pub(super) struct Options {
    /// Events for the store while it is down.
    #[arg(long, default_value_t = 9_000_000)]
    events: u32,
    /// Events for it each second, while it is down and before.
    #[arg(long, default_value_t = 20_000)]
    rate: u32,
    /// Events for each of the others each second.
    #[arg(long, default_value_t = 2_000)]
    others: u32,
    /// How many seconds are measured before it goes down.
    #[arg(long, default_value_t = 60)]
    before: u64,
    /// Events of the backlog whose drain with nothing else to do is the reference.
    #[arg(long, default_value_t = 1_000_000)]
    reference: u32,
    /// The store that goes down, by its name in lower case.
    #[arg(long, default_value = "postgresql")]
    store: String,
    /// A server to deliver with; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// The embedded store, which is always one of the others.
const LOCAL: &str = "sqlite";
/// Stores with a server, of which at least one has to be up with the one that goes down.
const OTHERS: [&str; 2] = ["postgresql", "redis"];
/// Events of a request for the store that goes down, and for the others.
const EVENTS: u32 = 500;
const OTHERS_EVENTS: u32 = 10;

const LATENCY_MOST: f64 = 1.1;
const MEMORY_MOST: f64 = 1.1;
const DRAIN_LEAST: f64 = 0.5;
const RETRIES_MOST: f64 = 0.2;

pub(super) fn run(options: &Options) -> Result<()> {
    let binary = workspace::dist_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("store-down")?;
    let (down, others) = start_stores(&options.store)?;
    let mut fixture = StoresFixture::start(&binary, &folder, down, others)?;
    let reference = fixture.reference(options)?;
    println!("reference: {reference}");
    let before = fixture.before(options)?;
    let outage = fixture.outage(options)?;
    let drain = fixture.drain_under_load(options)?;
    println!("after the outage: {drain}");
    let attempts = fixture.attempts()?;
    fixture.check_stored()?;
    fixture.server.stop()?;
    drop(fixture.others);
    std::fs::remove_dir_all(&folder).context("removing what the run left")?;
    report::print(&rows(&before, &outage, [&drain, &reference], attempts / f64::from(options.events)))
}

/// The store that goes down, and the others.
fn start_stores(name: &str) -> Result<(RunningStore, Vec<RunningStore>)> {
    let (mut down, mut others) = (None, Vec::new());
    for offer in SERVERS {
        let label = offer.name().to_lowercase();
        if label == name {
            down = offer.start(Purpose::Rate)?;
        } else if OTHERS.contains(&&*label) {
            others.extend(offer.start(Purpose::Rate)?);
        }
    }
    let down = down.with_context(|| format!("there is no store {name} with a server"))?;
    if others.is_empty() {
        bail!("there is no other server than {}", down.name);
    }
    Ok((down, others))
}

fn rows(before: &[Latency], outage: &Outage, drains: [&Drain; 2], retried: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (now, then) in outage.latencies.iter().zip(before) {
        let what = |name: &str| format!("{}: {name} until stored during the outage, against before", now.of);
        rows.push(Row::alternating(&what("p50"), "ms", &[(now.p50_ms, then.p50_ms)], Bar::AtMost(LATENCY_MOST)));
        rows.push(Row::alternating(&what("p99"), "ms", &[(now.p99_ms, then.p99_ms)], Bar::AtMost(LATENCY_MOST)));
    }
    let [first, .., last] = outage.memory_mb;
    let memory = "most memory in the last quarter of the outage, against the first";
    rows.push(Row::alternating(memory, "MB", &[(last, first)], Bar::AtMost(MEMORY_MOST)));
    let rates = [(drains[0].per_second, drains[1].per_second)];
    let drained = "drained with the others' load, against a backlog with nothing else to do";
    rows.push(Row::alternating(drained, "events/s", &rates, Bar::AtLeast(DRAIN_LEAST)));
    let what = "events of failed attempts, as if each had been sent whole, for each event";
    rows.push(Row::alone(what, "", retried, Bar::AtMost(RETRIES_MOST)));
    rows
}

/// The server and its stores.
struct StoresFixture {
    down: RunningStore,
    others: Vec<RunningStore>,
    launch: Launch,
    server: Server,
    /// Attempts that had failed when the outage began.
    failed_before: f64,
}

/// The figures of the outage.
struct Outage {
    latencies: Vec<Latency>,
    /// The most in each quarter of it.
    memory_mb: [f64; 4],
}

/// A drained backlog.
struct Drain {
    /// From the store's start until the first event was stored.
    noticed: Duration,
    /// From then on until the last one was.
    per_second: f64,
}

impl std::fmt::Display for Drain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0} events/s, the first {:.1} s after the store's start",
            self.per_second,
            self.noticed.as_secs_f64()
        )
    }
}

impl StoresFixture {
    fn start(binary: &Path, folder: &Path, down: RunningStore, others: Vec<RunningStore>) -> Result<Self> {
        let servers: String = others.iter().chain([&down]).map(RunningStore::section).collect();
        let local = format!("[types.{LOCAL}]\nroutes = [\"{LOCAL}\"]\n[sinks.{LOCAL}]\nkind = \"sqlite\"\n\n");
        let configuration = format!("{PATIENT}{local}{servers}");
        let launch = Launch::new(binary, folder, Some(&configuration))?;
        let server = launch.ready()?;
        Ok(Self { down, others, launch, server, failed_before: 0.0 })
    }

    /// A smaller backlog, drained with nothing else to do.
    fn reference(&mut self, options: &Options) -> Result<Drain> {
        self.down.kill()?;
        let load = self.load_of_down(options).lasting(lasting(options.reference, options.rate));
        load.run(&AtomicBool::new(false))?;
        self.drain()
    }

    /// The load as it is during the outage, with all stores up.
    fn before(&self, options: &Options) -> Result<Vec<Latency>> {
        let duration = Duration::from_secs(options.before.max(1));
        let (samples, ()) = with_loads(&self.loads_of_others(options), || {
            let load = self.load_of_down(options).lasting(duration);
            load.run(&AtomicBool::new(false)).map(drop)
        })?;
        self.server.wait_stored()?;
        Ok(self.latencies(&samples, "before the outage"))
    }

    fn outage(&mut self, options: &Options) -> Result<Outage> {
        self.failed_before = self.failed_attempts()?;
        self.down.kill()?;
        let duration = lasting(options.events, options.rate);
        let (samples, memory_mb) = with_loads(&self.loads_of_others(options), || {
            let load = self.load_of_down(options).lasting(duration);
            let client = |_| load.run(&AtomicBool::new(false));
            with_clients(1, client, || self.memory_by_quarters(duration), || {}).map(|(_, memory)| memory)
        })?;
        println!("down: {:.0} events wait; most memory in each quarter {memory_mb:.1?} MB", self.pending()?);
        Ok(Outage { latencies: self.latencies(&samples, "during the outage"), memory_mb })
    }

    /// The store comes back while the others have their full load.
    fn drain_under_load(&mut self, options: &Options) -> Result<Drain> {
        let loads = self.loads_of_others(options);
        with_loads(&loads, || self.drain()).map(|(_, drain)| drain)
    }

    fn load_of_down(&self, options: &Options) -> OpenLoop {
        OpenLoop::new(self.launch.intake, &self.down.label(), EVENTS, f64::from(options.rate), AckLevel::Durable)
    }

    fn loads_of_others(&self, options: &Options) -> Vec<(String, OpenLoop)> {
        let rate = f64::from(options.others);
        let load = |of: String| {
            let load = OpenLoop::new(self.launch.intake, &of, OTHERS_EVENTS, rate, AckLevel::Stored);
            (of, load)
        };
        self.names_of_others().into_iter().map(load).collect()
    }

    fn names_of_others(&self) -> Vec<String> {
        [LOCAL.to_owned()].into_iter().chain(self.others.iter().map(RunningStore::label)).collect()
    }

    fn latencies(&self, samples: &[Vec<Sample>], when: &str) -> Vec<Latency> {
        let names = self.names_of_others();
        let latencies: Vec<_> = names.into_iter().zip(samples).map(|(of, samples)| Latency::new(of, samples)).collect();
        latencies.iter().for_each(|latency| println!("{when}: {latency}"));
        latencies
    }

    fn memory_by_quarters(&self, duration: Duration) -> Result<[f64; 4]> {
        let mut most = [0.0; 4];
        for quarter in &mut most {
            self.server.process.forget_peak()?;
            thread::sleep(duration / 4);
            *quarter = self.server.process.memory()?.most as f64 / 1e6;
        }
        Ok(most)
    }

    /// Starts the store, and waits until nothing is left for it.
    fn drain(&mut self) -> Result<Drain> {
        let (waited, begun) = (self.pending()?, Instant::now());
        self.down.run()?;
        let (mut least, mut fell) = (waited, Instant::now());
        let mut first = None;
        loop {
            let left = self.pending()?;
            if left < least {
                first.get_or_insert((left, Instant::now()));
                (least, fell) = (left, Instant::now());
            }
            if let Some((at_first, since)) = first.filter(|_| left <= 0.0) {
                return Ok(Drain { noticed: since - begun, per_second: at_first / since.elapsed().as_secs_f64() });
            }
            if fell.elapsed() > PATIENCE {
                bail!("{left} of {waited} events aren't in {} and no fewer for {PATIENCE:?}", self.down.name);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn pending(&self) -> Result<f64> {
        self.of_down("forebay_events_pending")
    }

    fn of_down(&self, metric: &str) -> Result<f64> {
        Ok(metrics::sum_with(&self.server.metrics()?, metric, &format!("sink=\"{}\"", self.down.label())))
    }

    fn failed_attempts(&self) -> Result<f64> {
        self.of_down("forebay_lane_retries_total")
    }

    /// Events of the attempts that failed since the outage began, if each had been as large as the others and had gone out whole.
    fn attempts(&self) -> Result<f64> {
        let failed = self.failed_attempts()? - self.failed_before;
        let records =
            self.of_down("forebay_lane_batch_records_sum")? / self.of_down("forebay_lane_batch_records_count")?;
        println!("{failed} attempts failed; a batch has {records:.0} events");
        Ok(failed * records)
    }

    /// Each event that was accepted for the store is there, once.
    fn check_stored(&mut self) -> Result<()> {
        self.server.wait_stored()?;
        let label = format!("type=\"{}\"", self.down.label());
        let accepted = metrics::sum_with(&self.server.metrics()?, "forebay_events_accepted_total", &label);
        let Some(ids) = self.down.ids()? else { return Ok(()) };
        if (ids as f64 - accepted).abs() > 0.5 {
            bail!("{} holds {ids} events of {accepted}", self.down.name);
        }
        println!("{}: {ids} events, each once by its id", self.down.name);
        Ok(())
    }
}

/// How long so many events last.
fn lasting(events: u32, per_second: u32) -> Duration {
    Duration::from_secs_f64(f64::from(events) / f64::from(per_second.max(1)))
}

/// Does something while the others have their load. Returns how long their events took.
fn with_loads<T>(loads: &[(String, OpenLoop)], act: impl FnOnce() -> Result<T>) -> Result<(Vec<Vec<Sample>>, T)> {
    let over = AtomicBool::new(false);
    let client = |number: u32| loads[number as usize].1.run(&over);
    with_clients(u32::try_from(loads.len())?, client, act, || over.store(true, Ordering::Relaxed))
}
