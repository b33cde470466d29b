//! `cargo xtask test`: all tests of the workspace, then the short form of each campaign.

use anyhow::Result;

use crate::steps::{self, Step};
use crate::store::{NatsStore, PostgresStore, RedisStore, SwiftStore};
use crate::workspace::{cargo_test, run};
use crate::{campaign, console, deployments, fuzz, lab, scale, test_programs};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The slower campaigns too, and fuzzing for minutes.
    #[arg(long)]
    long: bool,
}

/// The steps of `cargo xtask test`; `cargo xtask ci` runs them too.
pub(crate) const STEPS: &[Step] = &[
    Step::alone("tests", test_programs::run_all),
    Step::alone("power cuts without checksums are noticed", || {
        let test = ["--features", "journal/mutant-no-checksum", "--test", "durability", "--", "checksum_mutant"];
        run(cargo_test()?.args(test))
    }),
    Step::parallel("short campaign: power cuts", campaign::power_cuts::short),
    Step::parallel("short campaign: kills", campaign::kills::short),
    Step::parallel("short campaign: batches", campaign::batches::short),
    Step::parallel("short campaign: PostgreSQL is killed", campaign::store_kills::short::<PostgresStore>),
    Step::parallel("short campaign: two services", campaign::two_services::short),
    Step::parallel("short campaign: bridge", campaign::bridge::short),
    Step::parallel("short campaign: full disk", campaign::full_disk::short),
    Step::parallel("short campaign: reloads", campaign::reloads::short),
    Step::parallel("console: types, lints and unit tests of the page", console::page::check),
    Step::parallel("console: every page in Chromium", console::short),
    Step::alone("lab", lab::short),
    Step::alone("deployments", deployments::check),
    Step::alone("image", scale::short),
    Step::alone("short campaign: fsync order", campaign::fsync_order::short),
];

/// Additional steps of `cargo xtask ci` and `cargo xtask test --long`.
pub(crate) const SLOW_STEPS: &[Step] = &[
    Step::alone("fuzzing", fuzz::short),
    Step::alone("short campaign: package", campaign::package::short),
    Step::alone("short campaign: tutorial", campaign::tutorial::short),
    Step::alone("short campaign: slow clients", campaign::slow_clients::short),
    Step::parallel("short campaign: cross-shard duplicates", campaign::cross_shard_duplicates::short),
    Step::parallel("short campaign: loads", campaign::loads::short),
    Step::parallel("short campaign: store faults", campaign::store_faults::short),
    Step::parallel("short campaign: Redis is killed", campaign::store_kills::short::<RedisStore>),
    Step::parallel("short campaign: NATS is killed", campaign::store_kills::short::<NatsStore>),
    Step::parallel("short campaign: Swift is killed", campaign::store_kills::short::<SwiftStore>),
    Step::parallel("short campaign: duplicates", campaign::duplicates::short),
    Step::parallel("short campaign: stops", campaign::stops::short),
    Step::parallel("short campaign: aggregate crash", campaign::aggregate_crash::short),
];

/// Runs the step of this name in this process.
pub(crate) fn run_step(name: &str) -> Result<()> {
    steps::run_one(&[STEPS, SLOW_STEPS].concat(), name)
}

/// Runs the steps that the arguments ask for.
pub(crate) fn run_tests(arguments: &Arguments) -> Result<()> {
    if arguments.long {
        return steps::run_all(&[STEPS, SLOW_STEPS, &[Step::alone("fuzzing for minutes", fuzz::long)]].concat());
    }
    steps::run_all(STEPS)
}
