//! `cargo xtask test`: all tests of the workspace, then the short form of each campaign.

use anyhow::Result;

use crate::store::{Nats, Postgres, Redis, Swift};
use crate::workspace::{self, Step, TESTED, cargo, run};
use crate::{campaign, deployments, lab, scale};

/// Tests at a time. Most of them wait for processes, disks and stores: with as many as two cores have, these are idle for half of the time.
const THREADS: &str = "3";

/// What `cargo xtask test` does; `cargo xtask ci` ends with it.
pub(crate) const STEPS: &[Step] = &[
    ("tests", || run(cargo().arg("test").args(TESTED).env("RUST_TEST_THREADS", THREADS))),
    ("power cuts without checksums are noticed", || {
        let test = ["--features", "journal/mutant-no-checksum", "--test", "power_cuts", "--", "checksum_mutant"];
        run(cargo().arg("test").args(TESTED).args(test))
    }),
    ("short campaign: power cuts", campaign::power_cuts::short),
    ("short campaign: kills", campaign::kills::short),
    ("short campaign: batches", campaign::batches::short),
    ("short campaign: leaning", campaign::leaning::short),
    ("short campaign: loads", campaign::loads::short),
    ("short campaign: PostgreSQL is killed", campaign::store_kills::short::<Postgres>),
    ("short campaign: Redis is killed", campaign::store_kills::short::<Redis>),
    ("short campaign: NATS is killed", campaign::store_kills::short::<Nats>),
    ("short campaign: Swift is killed", campaign::store_kills::short::<Swift>),
    ("short campaign: two services", campaign::two_services::short),
    ("lab", lab::short),
    ("deployments", deployments::check),
    ("image", scale::short),
    ("short campaign: package", campaign::package::short),
    ("short campaign: duplicates", campaign::duplicates::short),
    ("short campaign: full disk", campaign::full_disk::short),
    ("short campaign: slow clients", campaign::slow_clients::short),
    ("short campaign: stops", campaign::stops::short),
    ("short campaign: reloads", campaign::reloads::short),
    ("short campaign: windows", campaign::windows::short),
    ("order of system calls", campaign::order::short),
];

/// Runs them all.
pub(crate) fn run_tests() -> Result<()> {
    workspace::run_steps(STEPS)
}
