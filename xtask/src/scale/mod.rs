//! `cargo xtask scale`: many gateways and writers, in containers and behind load balancers: what the articles on the system before this one
//! measured, and what must hold while services are scaled, rolled and cut off.

mod balance;
mod balancer;
mod container;
mod limits;
mod namespaces;
mod neighbour;
mod stack;
mod start;
mod swarm;
mod table;
mod traffic;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::bench::report::{self, Row, median};
use crate::{static_build, workspace};

/// Options of `cargo xtask scale`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The server; without it the workspace's own is built, static.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// How often each figure is measured; the medians count.
    #[arg(long, global = true, default_value_t = 3)]
    rounds: u32,
    #[command(subcommand)]
    part: Part,
}

#[derive(Clone, Copy, Subcommand)]
enum Part {
    /// 1 to 8 gateways and writers: directly, through HAProxy and nginx, and by the gateway's own balancing.
    Balance,
    /// The image, and the time until a container of it is ready. Needs Docker.
    Start,
    /// Rates of a container with one CPU and 512 MB. Needs Docker.
    Limits,
    /// Latency beside a process that takes all cores. Needs Docker.
    Neighbour,
    /// The Swarm stack: scaled and rolled under load, and the articles' loads. Needs Docker.
    Swarm,
    /// A gateway that is cut off from its writers, and one whose disk is gone. Needs root.
    Namespaces,
}

/// What every part is given.
struct Setup {
    binary: PathBuf,
    rounds: u32,
    /// On the disk of the workspace; removed at the end.
    folder: PathBuf,
}

impl Setup {
    /// The median of what a measurement gives in each round.
    fn median(&self, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
        let measured: Result<Vec<f64>> = (0..self.rounds).map(|_| measure()).collect();
        Ok(median(measured?))
    }
}

/// Runs a part, or all of them; fails where a figure is short of its bar.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let setup = Setup {
        binary: match &arguments.binary {
            Some(binary) => binary.canonicalize().with_context(|| format!("finding {}", binary.display()))?,
            None => static_build::build()?,
        },
        rounds: arguments.rounds.max(1),
        folder: workspace::scratch_directory("scale")?,
    };
    let rows: Result<Vec<Row>> = match arguments.part {
        Part::Balance => balance::run(&setup),
        Part::Start => start::run(&setup),
        Part::Limits => limits::run(&setup),
        Part::Neighbour => neighbour::run(&setup),
        Part::Swarm => swarm::run(&setup),
        Part::Namespaces => namespaces::run(&setup),
    };
    std::fs::remove_dir_all(&setup.folder)?;
    report::print(&rows?)
}
