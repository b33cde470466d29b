//! The schemas of Kubernetes' resources, with a program that validates files. Both are in a package of PyPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::pip_package::PipPackage;
use crate::workspace::run;

/// The pinned version.
pub(crate) const PACKAGE: PipPackage =
    PipPackage { name: "kubernetes-validate", requirement: "kubernetes-validate==1.37.0", options: &[] };
/// The oldest and the newest version of Kubernetes for which the files are validated.
const VERSIONS: &[&str] = &["1.29.0", "1.37.0"];

/// Fails if a resource in these files violates its schema, or has unknown members.
pub(crate) fn check(files: &[PathBuf]) -> Result<()> {
    for version in VERSIONS {
        let mut validate = Command::new("python3");
        validate.args(["-m", "kubernetes_validate", "--strict", "--quiet", "--kubernetes-version", version]);
        validate.args(files.iter().map(PathBuf::as_path).map(Path::as_os_str));
        run(validate.env("PYTHONPATH", PACKAGE.folder()?))
            .with_context(|| format!("validating for Kubernetes {version}"))?;
    }
    Ok(())
}
