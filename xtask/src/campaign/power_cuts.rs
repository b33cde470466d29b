//! Simulated power cuts, in the tests of the journal and of the event log: this only says how many states and from which
//! seed.

use anyhow::{Result, bail};

use crate::clients::any_seed;
use crate::workspace::{self, cargo_test};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Disk states after a cut that the journal recovers from, and are checked; a tenth as many with the event log on it
    /// and retried posts.
    #[arg(long, default_value_t = 1_000_000)]
    states: u64,
    #[arg(long)]
    seed: Option<u64>,
}

/// The tests of the journal and of the event log, by their test targets.
const JOURNAL: &str = "durability";
const EVENT_LOG: &str = "appends";
/// The test that reads the two variables.
const TEST: &str = "power_cuts_";
const STATES: &str = "FOREBAY_POWER_CUT_STATES";
const SEED: &str = "FOREBAY_SEED";

/// As many states as in a CI run, from a fixed seed, with the build of the tests.
pub(crate) fn short() -> Result<()> {
    run_tests(20_000, 1)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    run_tests(options.states, options.seed.unwrap_or_else(any_seed))
}

fn run_tests(states: u64, seed: u64) -> Result<()> {
    println!("power cuts: {states} states, --seed {seed}");
    run_test(JOURNAL, states, seed)?;
    run_test(EVENT_LOG, states / 10, seed)
}

fn run_test(target: &str, states: u64, seed: u64) -> Result<()> {
    // With the features of all packages: nothing has to be built again.
    let mut command = cargo_test()?;
    command.args(["--quiet", "--test", target, TEST, "--", "--nocapture"]);
    command.env(STATES, states.to_string()).env(SEED, seed.to_string());
    let printed = workspace::output(&mut command)?;
    print!("{printed}");
    if tests_passed(&printed) == 0 {
        bail!("no test of {target} is called `{TEST}`: nothing was checked");
    }
    Ok(())
}

/// A campaign whose test was renamed would pass without running anything.
fn tests_passed(printed: &str) -> u64 {
    let results = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_without_tests_is_noticed() {
        let one = "test result: ok. 1 passed; 0 failed\n";
        let none = "test result: ok. 0 passed; 0 failed\n";
        assert_eq!(tests_passed(&format!("{none}{one}{none}")), 1);
        assert_eq!(tests_passed(none), 0);
    }
}
