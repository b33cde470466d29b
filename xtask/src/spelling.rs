//! Misspelled words, found by codespell. `.codespellrc` has the words that it may not correct.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::pip_package::PipPackage;
use crate::tidy;
use crate::workspace;

/// Its dictionary stays the same until the version is raised here.
const CODESPELL: PipPackage =
    PipPackage { name: "codespell", requirement: "codespell==2.4.3", options: &["--no-deps"] };

/// Checks the texts that the project wrote. Without the program, says that the check is skipped.
pub(crate) fn check() -> Result<()> {
    if let Err(error) = CODESPELL.fetch() {
        return workspace::skipped(&format!("spelling: codespell can't be installed: {error:#}"));
    }
    let mut codespell = Command::new("python3");
    codespell.args(["-m", "codespell_lib"]).args(tidy::our_texts()?);
    let status = codespell.current_dir(workspace::root()?).env("PYTHONPATH", CODESPELL.folder()?).status();
    let status = status.context("starting codespell")?;
    if !status.success() {
        bail!("correct these words, or add them to .codespellrc ({status})");
    }
    Ok(())
}
