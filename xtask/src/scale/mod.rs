//! `cargo xtask scale`: many gateways and writers, in containers and behind load balancers. It repeats the measurements of the articles on the
//! previous system, and checks that no event is lost or doubled while services are scaled, rolled and cut off.

mod balance;
mod balancer;
mod container;
mod findings;
mod limits;
mod namespaces;
mod neighbour;
mod stack;
mod start;
mod swarm;
mod table;
mod traffic;
mod users;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;

use container::Site;

use crate::docker::Docker;
use crate::report::{self, Row, median};
use crate::static_build;
use crate::workspace;

/// Options of `cargo xtask scale`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The server; without it the command builds a static one.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// The number of measurements of each figure; the median counts.
    #[arg(long, global = true, default_value_t = 3)]
    rounds: u32,
    /// One part [default: all of them]
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
enum Part {
    /// 1 to 8 gateways and writers: directly, through HAProxy and nginx, and by the gateway's own balancing.
    Balance,
    /// The image, and the time until a container of it is ready. Needs Docker.
    Start,
    /// Rates of a container with one CPU and 512 MB. Needs Docker.
    Limits,
    /// Latency while another process keeps all cores busy. Needs Docker.
    Neighbour,
    /// Causes of slowness, each in a container: found within a minute, and gone a minute after its end. Needs Docker.
    Findings(findings::Options),
    /// The Swarm stack: scaled and rolled under load, and the articles' loads. Needs Docker.
    Swarm,
    /// A gateway that is cut off from its writers, and one whose disk is gone. Needs root.
    Namespaces,
    /// 3,000 users who log in, read and write in nine databases, and request images in Swift; and the same with one reader, and without a cache.
    Users(users::Options),
}

/// The inputs of every part.
struct Setup {
    binary: PathBuf,
    rounds: u32,
    /// On the disk of the workspace; removed at the end.
    folder: PathBuf,
}

impl Setup {
    /// The median of a measurement over all rounds.
    fn median(&self, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
        let measured: Result<Vec<f64>> = (0..self.rounds).map(|_| measure()).collect();
        Ok(median(measured?))
    }
}

/// Runs a part, or all of them. Fails if a figure misses its bar.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let setup = Setup {
        binary: match &arguments.binary {
            Some(binary) => binary.canonicalize().with_context(|| format!("finding {}", binary.display()))?,
            None => static_build::build()?,
        },
        rounds: arguments.rounds.max(1),
        folder: workspace::scratch_directory("scale")?,
    };
    let parts = arguments.part.map_or_else(|| Part::ALL.to_vec(), |part| vec![part]);
    let rows: Result<Vec<Vec<Row>>> = parts.into_iter().map(|part| part.run(&setup)).collect();
    std::fs::remove_dir_all(&setup.folder)?;
    report::print(&rows?.into_iter().flatten().collect::<Vec<_>>())
}

/// The image of the server that the tests were built with: its user, its health check, and a fresh volume. Its size and its start are
/// printed and not judged: it has libraries that the real one doesn't need, and a test doesn't depend on the machine's speed.
pub(crate) fn short() -> Result<()> {
    if let Some(missing) = Docker::missing() {
        workspace::skipped(missing)?;
        return Ok(());
    }
    // A machine may forbid what a daemon needs, such as control groups.
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(error) => {
            workspace::skipped(&format!("no Docker daemon can be started here: {error:#}"))?;
            return Ok(());
        }
    };
    let setup =
        Setup { binary: workspace::tested_binary(None)?, rounds: 1, folder: workspace::scratch_directory("image")? };
    let rows = Site::on(docker, &setup.binary).and_then(|site| start::run_on(&setup, &site));
    std::fs::remove_dir_all(&setup.folder)?;
    rows?.iter().for_each(|row| println!("{}: {:.1} {}", row.what, row.measured, row.unit));
    Ok(())
}

impl Part {
    /// All parts, those that fail soonest first.
    const ALL: [Self; 8] = [
        Self::Start,
        Self::Limits,
        Self::Findings(findings::Options::ALL),
        Self::Swarm,
        Self::Balance,
        Self::Namespaces,
        Self::Neighbour,
        Self::Users(users::Options::FULL),
    ];

    fn run(self, setup: &Setup) -> Result<Vec<Row>> {
        println!("── {self:?}");
        match self {
            Self::Balance => balance::run(setup),
            Self::Start => start::run(setup),
            Self::Limits => limits::run(setup),
            Self::Findings(options) => findings::run(setup, options),
            Self::Swarm => swarm::run(setup),
            Self::Namespaces => namespaces::run(setup),
            Self::Neighbour => neighbour::run(setup),
            Self::Users(options) => users::run(setup, options),
        }
    }
}
