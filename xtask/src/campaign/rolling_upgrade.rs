//! A gateway and a writer of an older build under load, of which one is upgraded before the other. While their protocols differ, the gateway keeps
//! the events, with a message that names both sides. After the second upgrade each acknowledged event is stored once, and the ledger balances.

use std::fmt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::frame::{Frame, FrameOptions};
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{acknowledged_while, judge};
use super::ledger;
use crate::metrics;
use crate::server::{Launch, ProcessRole, Server};
use crate::two_services::{SinkSpec, gateway_config, writer_config};
use crate::wait::until;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The `forebay` of the older build
    #[arg(long, value_name = "FILE")]
    old: PathBuf,
    /// Seconds of load in each of three phases: both old, one upgraded, both upgraded
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Clients, each with one request at a time
    #[arg(long, default_value_t = 32)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

const SINK: SinkSpec<'static> = SinkSpec { name: "warehouse", settings: "kind = \"sqlite\"\n" };
const STORED: &str = "forebay_events_stored_total";
/// A gateway that hasn't noticed the other version after this time doesn't check it.
const NOTICE_MAX: Duration = Duration::from_secs(30);

/// The side that is upgraded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Writer,
    Gateway,
}

impl First {
    /// The side that the messages name for the second upgrade.
    const fn second(self) -> &'static str {
        match self {
            Self::Writer => "gateway",
            Self::Gateway => "writer",
        }
    }
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writer => "writer",
            Self::Gateway => "gateway",
        })
    }
}

/// A process, and how it is started.
struct Side {
    launch: Launch,
    server: Server,
    log: PathBuf,
}

impl Side {
    fn start(role: ProcessRole, binary: &Path, folder: &Path, config: &str) -> Result<Self> {
        let folder = folder.join(role.subcommand());
        let launch = Launch::fresh(role, binary, &folder, config)?;
        Ok(Self { server: launch.ready()?, launch, log: folder.join("server.log") })
    }

    /// Stops it, and starts this binary with the same data directory and ports.
    fn upgrade(self, binary: &Path) -> Result<Self> {
        self.server.stop()?;
        let launch = self.launch.with_program(binary);
        Ok(Self { server: launch.ready()?, launch, log: self.log })
    }

    fn sum(&self, metric: &str) -> Result<f64> {
        Ok(metrics::sum(&self.server.metrics()?, metric))
    }
}

/// Both processes.
struct Pair {
    gateway: Side,
    writer: Side,
}

/// The results of one upgrade.
struct Figures {
    noticed: Duration,
    waiting: f64,
    drained: Duration,
    accepted: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for first in [First::Writer, First::Gateway] {
        let Options { seconds, connections, .. } = options;
        let frame = options
            .frame
            .begin(format!("rolling upgrade, the {first} first: {seconds} s a phase, {connections} connections"))?;
        upgrade_under_load(options, frame, first).with_context(|| format!("the {first} first"))?;
    }
    Ok(())
}

fn upgrade_under_load(options: &Options, frame: Frame, first: First) -> Result<()> {
    let writer = Side::start(ProcessRole::Writer, &options.old, &frame.folder, &writer_config(&[SINK]))?;
    let config = gateway_config(&[writer.launch.intake], &[SINK])?;
    let gateway = Side::start(ProcessRole::Gateway, &options.old, &frame.folder, &config)?;
    let shared = Shared::new(gateway.launch.intake, frame.seed);
    shared.server_is_up();
    let database = writer.launch.data.join("events.db");
    let pair = Pair { gateway, writer };
    let act = |shared: &Shared| pair.upgrade(&frame.binary, Duration::from_secs(options.seconds), first, shared);
    let (known, (pair, mut figures)) = acknowledged_while(&shared, options.connections, act)?;
    let begun = Instant::now();
    pair.gateway.server.wait_stored()?;
    figures.drained = begun.elapsed();
    figures.accepted = ledger::accepted(&pair.gateway.server)?;
    ledger::expect_stored(&pair.gateway.server, figures.accepted, 1)?;
    pair.gateway.server.stop()?;
    pair.writer.server.stop()?;
    println!("{figures}");
    judge(&database, Oracle::new(frame.seed, known), &frame.folder)?;
    frame.end()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noticed, waiting, drained, accepted } = self;
        let (noticed, drained) = (noticed.as_secs_f64(), drained.as_secs_f64());
        write!(
            f,
            "message after {noticed:.1} s; {waiting} events waited at the second upgrade; all {accepted} accepted events stored \
             {drained:.1} s after the load, none dead"
        )
    }
}

impl Pair {
    fn upgrade(mut self, new: &Path, phase: Duration, first: First, shared: &Shared) -> Result<(Self, Figures)> {
        thread::sleep(phase);
        let before = self.gateway.sum(STORED)?;
        if before <= 0.0 {
            bail!("two old sides stored nothing: is the older build a Forebay?");
        }
        self = self.upgrade_side(first == First::Gateway, new, shared)?;
        let noticed = self.wait_for_message(first)?;
        let at = self.gateway.sum(STORED)?;
        thread::sleep(phase);
        let waiting = self.gateway.server.pending()?;
        ledger::expect(&self.gateway.server, &[(STORED, at), ("forebay_events_dead_total", 0.0)])?;
        if waiting <= 0.0 {
            bail!("no event waits between the upgrades: nothing was checked");
        }
        self = self.upgrade_side(first == First::Writer, new, shared)?;
        thread::sleep(phase);
        Ok((self, Figures { noticed, waiting, drained: Duration::ZERO, accepted: 0.0 }))
    }

    fn upgrade_side(self, is_gateway: bool, new: &Path, shared: &Shared) -> Result<Self> {
        if !is_gateway {
            return Ok(Self { writer: self.writer.upgrade(new).context("upgrading the writer")?, ..self });
        }
        shared.server_goes_down();
        let gateway = self.gateway.upgrade(new).context("upgrading the gateway")?;
        shared.server_is_up();
        Ok(Self { gateway, ..self })
    }

    /// Waits until the gateway's log says which side to upgrade.
    fn wait_for_message(&self, first: First) -> Result<Duration> {
        let begun = Instant::now();
        let wanted = format!("upgrade the {} to ", first.second());
        let mut line = None;
        until("the gateway names the versions", NOTICE_MAX, || {
            let log = std::fs::read_to_string(&self.gateway.log).context("reading the gateway's log")?;
            let says = |line: &&str| [&*wanted, "protocol 1", "protocol 2"].iter().all(|words| line.contains(words));
            line = log.lines().find(says).map(str::to_owned);
            Ok(line.is_some())
        })?;
        println!("{}", line.unwrap_or_default());
        Ok(begun.elapsed())
    }
}
