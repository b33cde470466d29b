//! `cargo xtask test`: all tests of the workspace, then the short form of each campaign.

use anyhow::Result;

use crate::store::{NatsStore, PostgresStore, RedisStore, SwiftStore};
use crate::workspace::{self, Step, cargo_test, run};
use crate::{campaign, deployments, fuzz, lab, scale, test_programs};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The slower campaigns too, and fuzzing for minutes.
    #[arg(long)]
    long: bool,
}

/// What `cargo xtask test` does; `cargo xtask ci` does it too.
pub(crate) const STEPS: &[Step] = &[
    ("tests", test_programs::run_all),
    ("power cuts without checksums are noticed", || {
        let test = ["--features", "journal/mutant-no-checksum", "--test", "durability", "--", "checksum_mutant"];
        run(cargo_test()?.args(test))
    }),
    ("short campaign: power cuts", campaign::power_cuts::short),
    ("short campaign: kills", campaign::kills::short),
    ("short campaign: batches", campaign::batches::short),
    ("short campaign: PostgreSQL is killed", campaign::store_kills::short::<PostgresStore>),
    ("short campaign: two services", campaign::two_services::short),
    ("short campaign: full disk", campaign::full_disk::short),
    ("short campaign: reloads", campaign::reloads::short),
    ("lab", lab::short),
    ("deployments", deployments::check),
    ("image", scale::short),
    ("order of system calls", campaign::fsync_order::short),
];

/// What `cargo xtask ci` and `cargo xtask test --long` do besides.
pub(crate) const SLOW_STEPS: &[Step] = &[
    ("fuzzing", fuzz::short),
    ("short campaign: leaning", campaign::cross_shard_duplicates::short),
    ("short campaign: loads", campaign::loads::short),
    ("short campaign: store faults", campaign::store_faults::short),
    ("short campaign: Redis is killed", campaign::store_kills::short::<RedisStore>),
    ("short campaign: NATS is killed", campaign::store_kills::short::<NatsStore>),
    ("short campaign: Swift is killed", campaign::store_kills::short::<SwiftStore>),
    ("short campaign: package", campaign::package::short),
    ("short campaign: duplicates", campaign::duplicates::short),
    ("short campaign: slow clients", campaign::slow_clients::short),
    ("short campaign: stops", campaign::stops::short),
    ("short campaign: windows", campaign::aggregate_crash::short),
];

/// Runs the steps that the arguments ask for.
pub(crate) fn run_tests(arguments: &Arguments) -> Result<()> {
    if arguments.long {
        return workspace::run_steps(&[STEPS, SLOW_STEPS, &[("fuzzing for minutes", fuzz::long)]].concat());
    }
    workspace::run_steps(STEPS)
}
