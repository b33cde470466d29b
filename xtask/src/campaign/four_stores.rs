//! Access records through two writers into PostgreSQL, Redis, OpenSearch and Swift at once, with a SIGKILL of each writer: afterwards each
//! store holds every record as often as it was sent, byte for byte. Each is asked by its own means.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::any_seed;
use super::batches::records;
use super::loads::packed;
use super::sent::Sent;
use super::stores::{check_ledger, check_place};
use crate::metrics;
use crate::server::{Launch, Process, ProcessRole, Server};
use crate::store::{Purpose, RunningStore, SERVERS};
use crate::two_services::{SinkSpec, ready, remote_sink, upstream, writer_config};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are sent.
    #[arg(long, default_value_t = 20)]
    times: u64,
    /// Repeats a run: the same order of kills, and the same moments.
    #[arg(long)]
    seed: Option<u64>,
    /// A server for both roles; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const TYPE: &str = "access";
const WRITERS: usize = 2;
/// How long a writer stays down at most.
const DOWN_MILLISECONDS_MAX: u64 = 2_000;
/// What doesn't move for so long doesn't move any more.
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    let records = records(options.file.as_deref())?;
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let started = SERVERS.iter().map(|offer| offer.start(Purpose::Content)).collect::<Result<Vec<_>>>()?;
    let mut places: Vec<RunningStore> = started.into_iter().flatten().collect();
    let sent = Sent::new(&records, options.times);
    println!("four stores: {} events into {} stores, --seed {seed}", sent.events(), places.len());

    let mut site = Site::start(&binary, &folder, &places)?;
    let file = packed(&folder, &records, options.times)?;
    let load = start_load(&binary, site.gateway.0.intake, &file)?;
    site.kill_each(seed, sent.events() * places.len() as u64)?;
    load.wait_success(PATIENCE).context("the load")?;
    site.gateway.1.wait_stored()?;
    check_ledger(&site.gateway.1, sent.events(), places.len())?;
    site.stop()?;
    for place in &mut places {
        check_place(place, &sent, &folder).with_context(|| place.name)?;
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// The processes of the two roles.
struct Site {
    gateway: (Launch, Server),
    writers: Vec<(Launch, Server)>,
}

impl Site {
    fn start(binary: &Path, folder: &Path, places: &[RunningStore]) -> Result<Self> {
        let start = |role: ProcessRole, name: &str, config: &str| {
            let folder = folder.join(name);
            workspace::empty_directory(&folder)?;
            let launch = Launch::of_role(role, binary, &folder, Some(config))?;
            let server = ready(&launch).with_context(|| name.to_owned())?;
            Ok((launch, server))
        };
        let labels: Vec<String> = places.iter().map(RunningStore::label).collect();
        let sinks: Vec<SinkSpec<'_>> =
            places.iter().zip(&labels).map(|(place, name)| SinkSpec { name, settings: &place.sink }).collect();
        let config = writer_config(&sinks);
        let writers = (0..WRITERS).map(|number| start(ProcessRole::Writer, &format!("writer-{number}"), &config));
        let writers: Vec<(Launch, Server)> = writers.collect::<Result<_>>()?;
        let addresses: Vec<SocketAddr> = writers.iter().map(|(launch, _)| launch.intake).collect();
        let mut config = format!("{}[types.{TYPE}]\nroutes = {labels:?}\n\n", upstream(&addresses));
        for sink in &sinks {
            config.push_str(&remote_sink(sink)?);
        }
        Ok(Self { gateway: start(ProcessRole::Gateway, "gateway", &config)?, writers })
    }

    /// Kills each writer when its share of `effects` is reached, and starts it again.
    fn kill_each(&mut self, seed: u64, effects: u64) -> Result<()> {
        let mut random = Random::new(seed);
        let mut order: Vec<usize> = (0..WRITERS).collect();
        random.shuffle(&mut order);
        for (number, writer) in (1..).zip(order) {
            let part = effects / (WRITERS as u64 + 1);
            let stored = self.wait_stored(part * number - random.below(part / 2 + 1))?;
            let (launch, server) = self.writers.swap_remove(writer);
            server.kill()?;
            thread::sleep(Duration::from_millis(random.below(DOWN_MILLISECONDS_MAX)));
            let again = (launch.clone(), ready(&launch)?);
            self.writers.push(again);
            let last = self.writers.len() - 1;
            self.writers.swap(writer, last);
            println!("writer {writer} was killed after {stored} of {effects} events were in a store");
        }
        Ok(())
    }

    fn wait_stored(&self, due: u64) -> Result<f64> {
        let begun = Instant::now();
        loop {
            let stored = metrics::sum(&self.gateway.1.metrics()?, "forebay_events_stored_total");
            if stored >= due as f64 {
                return Ok(stored);
            }
            if begun.elapsed() > PATIENCE {
                bail!("only {stored} of {due} events were stored in {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn stop(self) -> Result<()> {
        self.gateway.1.stop()?;
        self.writers.into_iter().try_for_each(|(_, server)| server.stop())
    }
}

fn start_load(binary: &Path, gateway: SocketAddr, file: &Path) -> Result<Process> {
    let mut command = Command::new(binary);
    command.args(["load", "--type", TYPE, "--url", &format!("http://{gateway}")]).arg(file);
    Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}
