//! A thousand gateways through one writer, first into PostgreSQL and then into Redis. The writer has at most the connections to the store that
//! its configuration allows, and its memory doesn't grow with the batches. When the gateways are gone, their connections and the memory for
//! them are freed. When they return, the store knows each lane. Afterwards each event is stored once, and each lane has one cursor.

mod gateway;

use std::collections::HashSet;
use std::io::BufRead;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use xxhash_rust::xxh3::xxh3_128;

use gateway::Gateway;
use harness::clients::any_seed;
use harness::server::{Launch, ProcessRole, Server};
use harness::store::{PostgresStore, RedisStore, Shared};
use harness::two_services::{SinkSpec, writer_config};
use harness::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Gateways, each with another gateway id.
    #[arg(long, default_value_t = 1_000)]
    gateways: u64,
    /// Batches of each gateway before all of them leave; at least 3.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Batches of each gateway after its return.
    #[arg(long, default_value_t = 2)]
    rounds_after: u32,
    /// Repeats a run: the same gateway ids and batches.
    #[arg(long)]
    seed: Option<u64>,
    /// The writer; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const SINK: &str = "warehouse";
/// Gateways that have a request in flight at a time.
const IN_FLIGHT: usize = 64;
/// Connections to the store, as the writer's configuration says.
const CONNECTIONS_MAX: usize = 8;
/// The writer forgets a lane after a minute.
const IDLE: Duration = Duration::from_secs(65);
/// Bytes of anonymous memory by which a writer may grow over the same work.
const GROWTH_MOST: u64 = 2 * 1024 * 1024;
/// Bytes that it may keep when all gateways are gone: a connection to the store, and free pieces of memory between others.
const REST_MOST: u64 = 4 * 1024 * 1024;
/// A writer returns free memory to the system once a second, and every 30 seconds on a busy machine.
const MEMORY_RETURNS: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(35);
const SAMPLE: Duration = Duration::from_millis(50);
/// A writer that hangs must not hang the campaign.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("many-gateways: {} gateways, {} rounds, --seed {seed}", options.gateways, options.rounds);
    raise_file_limit()?;
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let idle_timeout = format!("idle_timeout = \"{}s\"\n", IDLE.as_secs());
    let postgres = Kind { store: "postgres", settings: &idle_timeout, idle_connections_max: 1 };
    into_store::<PostgresStore>(&postgres, options, (seed, &binary, &folder))?;
    let redis = Kind { store: "redis", settings: "", idle_connections_max: CONNECTIONS_MAX };
    into_store::<RedisStore>(&redis, options, (seed, &binary, &folder))?;
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// A kind of store.
struct Kind<'a> {
    store: &'static str,
    /// Settings of the writer's sink, in addition to the usual ones.
    settings: &'a str,
    /// Connections that there may be after [`IDLE`] and one call. A sink for Redis keeps idle ones for five minutes.
    idle_connections_max: usize,
}

fn into_store<S: Shared + Sync>(
    kind: &Kind<'_>,
    options: &Options,
    (seed, binary, folder): (u64, &Path, &Path),
) -> Result<()> {
    let store = S::require()?;
    println!("{}: at most {CONNECTIONS_MAX} connections", S::NAME);
    let settings = format!("{}max_connections = {CONNECTIONS_MAX}\n{}", store.sink(), kind.settings);
    let mut site = Site::start(binary, folder, &settings, kind.store, options, seed)?;
    let ended = AtomicBool::new(false);
    let (done, most) = thread::scope(|scope| {
        let watch = scope.spawn(|| most_connections(&store, &ended));
        let done = site.come_and_go(&store, kind, options);
        ended.store(true, Ordering::Relaxed);
        (done, watch.join())
    });
    let most = most.map_err(|_| anyhow::anyhow!("the thread that counts connections panicked"))??;
    println!("  most connections: {most}");
    ensure!(most <= CONNECTIONS_MAX, "{} had {most} connections, configured are {CONNECTIONS_MAX}", S::NAME);
    done.with_context(|| S::NAME)?;
    ensure!(most > 0, "no connection to {} was seen: the count shows nothing", S::NAME);
    let Site { server, gateways, .. } = site;
    server.stop()?;
    check(store, &gateways, folder).with_context(|| S::NAME)
}

/// How many connections the store had at most, until the end.
fn most_connections(store: &impl Shared, ended: &AtomicBool) -> Result<usize> {
    let mut most = 0;
    while !ended.load(Ordering::Relaxed) {
        most = most.max(store.connections()?);
        thread::sleep(SAMPLE);
    }
    Ok(most)
}

/// One writer, and the gateways before it.
struct Site {
    writer: SocketAddr,
    server: Server,
    kind: &'static str,
    gateways: Vec<Gateway>,
    order: Random,
    runtime: Runtime,
}

impl Site {
    fn start(
        binary: &Path,
        folder: &Path,
        settings: &str,
        kind: &'static str,
        options: &Options,
        seed: u64,
    ) -> Result<Self> {
        let folder = folder.join(kind);
        workspace::empty_directory(&folder)?;
        let config = writer_config(&[SinkSpec { name: SINK, settings }]);
        let launch = Launch::of_role(ProcessRole::Writer, binary, &folder, Some(&config))?;
        Ok(Self {
            writer: launch.intake,
            server: launch.ready()?,
            kind,
            gateways: (0..options.gateways).map(|number| Gateway::new(number, seed)).collect(),
            order: Random::new(seed),
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    fn come_and_go(&mut self, store: &impl Shared, kind: &Kind<'_>, options: &Options) -> Result<()> {
        let descriptors = self.server.process.descriptors()?;
        let idle = self.memory("before the first gateway", u64::MAX)?;
        self.connect()?;
        let mut second = 0;
        for round in 1..=options.rounds {
            self.send()?;
            if round == 2 {
                second = self.memory("after round 2", 0)?;
            }
        }
        self.check_memory(&format!("after round {}", options.rounds), second, GROWTH_MOST)?;

        self.disconnect()?;
        // The pool's connections to the store are among the descriptors.
        self.wait("the connections of gateways close", |server| {
            Ok(server.process.descriptors()? <= descriptors + CONNECTIONS_MAX)
        })?;
        thread::sleep(IDLE);
        self.call_once()?;
        self.wait("idle connections to the store close", |_| Ok(store.connections()? <= kind.idle_connections_max))?;
        println!("  connections after {IDLE:?} without gateways and one call: {}", store.connections()?);
        self.check_memory("without gateways", idle, REST_MOST)?;

        self.connect()?;
        (0..options.rounds_after).try_for_each(|_| self.send())?;
        self.check_memory("after their return", second, GROWTH_MOST)
    }

    fn connect(&mut self) -> Result<()> {
        let (writer, kind) = (self.writer, self.kind);
        self.each(async |gateway| gateway.connect(writer, kind).await)
    }

    fn send(&mut self) -> Result<()> {
        self.each(async |gateway| gateway.send().await)
    }

    fn disconnect(&mut self) -> Result<()> {
        self.each(async |gateway| gateway.disconnect().await)
    }

    /// A gateway connects, sends a batch and leaves.
    fn call_once(&mut self) -> Result<()> {
        let (writer, kind) = (self.writer, self.kind);
        let gateway = self.gateways.first_mut().context("no gateways")?;
        self.runtime.block_on(async {
            gateway.connect(writer, kind).await?;
            gateway.send().await?;
            gateway.disconnect().await
        })
    }

    /// Does something with each gateway, in an order of chance.
    fn each(&mut self, work: impl AsyncFn(&mut Gateway) -> Result<()>) -> Result<()> {
        let mut gateways: Vec<&mut Gateway> = self.gateways.iter_mut().collect();
        self.order.shuffle(&mut gateways);
        let work = &work;
        let all =
            stream::iter(gateways).map(Ok).try_for_each_concurrent(IN_FLIGHT, async |gateway| work(gateway).await);
        self.runtime.block_on(all)
    }

    /// Anonymous memory of the writer, once it has returned what is free: the least that is seen, until that is at most `enough`.
    fn memory(&self, when: &str, enough: u64) -> Result<u64> {
        let mut bytes = u64::MAX;
        let begun = Instant::now();
        while begun.elapsed() < *MEMORY_RETURNS.start() || bytes > enough && begun.elapsed() < *MEMORY_RETURNS.end() {
            thread::sleep(SAMPLE);
            bytes = bytes.min(self.server.process.anonymous_memory()?);
        }
        println!("  memory {when}: {:.1} MB", bytes as f64 / 1e6);
        Ok(bytes)
    }

    /// Fails if the writer keeps more memory than it had, and `most`.
    fn check_memory(&self, when: &str, before: u64, most: u64) -> Result<()> {
        let growth = self.memory(when, before + most)?.saturating_sub(before);
        ensure!(growth <= most, "{when} the writer's memory had grown by {growth} bytes, at most {most} are allowed");
        Ok(())
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Server) -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !is_so(&self.server)? {
            ensure!(begun.elapsed() < PATIENCE, "not so after {PATIENCE:?}: {what}");
            thread::sleep(SAMPLE);
        }
        Ok(())
    }
}

/// Each event is stored once, and each lane has one cursor, which is right.
fn check<S: Shared>(mut store: S, gateways: &[Gateway], folder: &Path) -> Result<()> {
    let cursors = store.cursors()?;
    for Gateway { lane, position, .. } in gateways {
        let found = cursors.get(&format!("{}/{lane}", lane.origin));
        ensure!(found == Some(position), "the cursor of {}/{lane} is {found:?}, and {position} was sent", lane.origin);
    }
    ensure!(cursors.len() == gateways.len(), "{} cursors of {} lanes", cursors.len(), gateways.len());
    let hash = |payload: &str| xxh3_128(payload.as_bytes());
    let mut missing: HashSet<u128> =
        gateways.iter().flat_map(Gateway::payloads).map(|payload| hash(&payload)).collect();
    let events = missing.len();
    for payload in store.payloads(folder)?.lines() {
        let payload = payload.context("reading what is stored")?;
        if !missing.remove(&hash(&payload)) {
            bail!("stored twice, or never sent: {payload:.60}");
        }
    }
    ensure!(missing.is_empty(), "{} of {events} events are missing", missing.len());
    println!("  {events} events, each once, and {} cursors", cursors.len());
    Ok(())
}

/// Each gateway needs a descriptor here and one in the writer.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).context("raising the limit of open files")
}
