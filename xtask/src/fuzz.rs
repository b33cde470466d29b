//! `cargo xtask fuzz`: the fuzz targets for a longer time than among the other tests.

use anyhow::{Result, bail};
use testkit::fuzz::{SECONDS, SEED};

use crate::workspace::{cargo_test, output};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each target runs.
    #[arg(long, default_value_t = LONG_SECONDS)]
    seconds: u32,
    /// Repeats a run.
    #[arg(long)]
    seed: Option<u64>,
    /// Part of the name of a target, such as `recovery`.
    #[arg(default_value = "")]
    target: String,
}

/// How long each target runs in CI.
const SHORT_SECONDS: u32 = 5;
/// How long each target runs with `--long`.
const LONG_SECONDS: u32 = 120;
/// The prefix of the names of targets.
const PREFIX: &str = "fuzz_";
/// The request head, recovery, expressions, schemas, payload steps and frames of NATS.
const TARGETS: usize = 13;

/// All targets, for a short time.
pub(crate) fn short() -> Result<()> {
    let ran = fuzz(SHORT_SECONDS, None, "")?;
    if ran < TARGETS {
        bail!("{ran} fuzz targets ran, of {TARGETS}");
    }
    Ok(())
}

/// All targets, for minutes.
pub(crate) fn long() -> Result<()> {
    fuzz(LONG_SECONDS, None, "").map(drop)
}

/// The selected targets.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if fuzz(arguments.seconds, arguments.seed, &arguments.target)? == 0 {
        bail!("no fuzz target is called {}", arguments.target);
    }
    Ok(())
}

/// Runs targets in the build of the tests. Returns their number.
fn fuzz(seconds: u32, seed: Option<u64>, target: &str) -> Result<usize> {
    let mut command = cargo_test()?;
    command.env(SECONDS, seconds.to_string()).args(["--quiet", "--lib", "--tests", "--"]);
    command.args(["--nocapture", &format!("{PREFIX}{target}")]);
    if let Some(seed) = seed {
        command.env(SEED, seed.to_string());
    }
    let printed = output(&mut command)?;
    let targets: Vec<&str> = printed.lines().filter(|line| line.contains(" inputs, ")).collect();
    targets.iter().for_each(|line| println!("{line}"));
    Ok(targets.len())
}
