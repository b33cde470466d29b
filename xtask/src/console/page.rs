//! The page's own checks: types, format, lints and unit tests by Node, as a step of `cargo xtask test`.

use std::process::Command;

use anyhow::{Context, Result};

use crate::npm;
use crate::workspace::{has_program, root, run, skipped, target_directory};

/// Runs `npm run check` of the page. Its tools are in `target`, not in the tree.
pub(crate) fn check() -> Result<()> {
    if let Some(missing) = ["node", "npm"].iter().find(|program| !has_program(program)) {
        return skipped(&format!("the page's types, lints and unit tests: {missing} is missing"));
    }
    let page = root()?.join("crates").join("console").join("page");
    let tools = target_directory()?.join("tools").join("console-page");
    npm::ensure_locked(&tools, &page)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::iter::once(tools.join("node_modules").join(".bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(programs).context("adding the tools to the PATH")?;
    run(Command::new("npm").arg("--prefix").arg(&page).args(["run", "--silent", "check"]).env("PATH", path))
}
