//! `cargo xtask ci`: everything that must pass before a change is merged, in the order in which it fails soonest.

use anyhow::{Context, Result};

use crate::workspace::{self, Step, cargo, run};
use crate::{services, test, tidy};

/// Its options and reports stay the same until somebody raises it here.
const CARGO_DENY: &str = "0.20.2";

const STEPS: &[Step] = &[
    ("programs", services::require_all),
    ("format", || run(cargo().args(["fmt", "--all", "--check"]))),
    ("tidy", tidy::check),
    ("lints", || {
        run(cargo().args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    }),
    ("dependencies", dependencies),
    ("documentation", || {
        run(cargo()
            .args(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings"))
    }),
];

/// Runs every step; the last are those of `cargo xtask test`, with the slower campaigns.
pub(crate) fn run_ci() -> Result<()> {
    workspace::run_steps(&[STEPS, test::STEPS, test::SLOW_STEPS].concat())
}

/// Licences, bans and sources of everything in the lock file. The advisory database isn't asked: it changes by
/// itself, and a build that passed must pass again.
fn dependencies() -> Result<()> {
    let tools = workspace::target_directory()?.join("tools");
    let deny = tools.join("bin").join("cargo-deny");
    if !deny.is_file() {
        println!("installing cargo-deny {CARGO_DENY} in {} (once, some minutes)", tools.display());
        let install = ["install", "cargo-deny", "--quiet", "--locked", "--version", CARGO_DENY, "--root"];
        run(cargo().args(install).arg(&tools)).context("cargo-deny is needed to check licences")?;
    }
    run(std::process::Command::new(deny).args(["--log-level", "warn", "check", "bans", "licenses", "sources"]))
}
