//! The licences of all packages that are linked into the binary. They require that the binary's distribution contains them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::static_build::triple;
use crate::workspace::{cargo, output};

const HEADER: &str = "Forebay is under the Apache License 2.0, see LICENSE. Its binary contains the packages below, each under the licence below\n\
    it; the Rust standard library (MIT or Apache-2.0); and, where it is linked statically, the GNU C library (LGPL-2.1 or later), whose\n\
    source is at https://sourceware.org/glibc. Its source code lets you link it with another version.\n";
/// The beginnings of the names of files with a licence.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];

/// All licences as one text: each licence once, after the packages that have it.
pub(super) fn text() -> Result<String> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple()]);
    let metadata: Value = serde_json::from_str(&output(&mut command)?).context("cargo metadata printed no JSON")?;
    let mut packages_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked(&metadata)? {
        let text = |field: &str| package[field].as_str().unwrap_or("unknown");
        let name = format!("{} {} ({})", text("name"), text("version"), text("license"));
        let folder = Path::new(text("manifest_path")).parent().context("a manifest is in a folder")?;
        for licence in licences(folder)? {
            packages_of.entry(licence).or_default().insert(name.clone());
        }
    }
    ensure!(!packages_of.is_empty(), "no package has a licence: cargo metadata must have changed");
    let mut all = HEADER.to_owned();
    for (licence, packages) in packages_of {
        let names = packages.into_iter().collect::<Vec<_>>().join("\n");
        write!(all, "\n{}\n{names}\n\n{licence}\n", "=".repeat(80))?;
    }
    Ok(all)
}

/// The third-party packages that are linked into `forebay`, without those for builds and tests.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    // Its own features: those of the resolved workspace contain those for tests.
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--package", "forebay", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let tree = output(tree.args(["--target", &triple()]))?;
    let listed: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let is_linked = |package: &&Value| {
        let key = package["name"].as_str().zip(package["version"].as_str());
        !package["source"].is_null() && key.is_some_and(|key| listed.contains(&key))
    };
    Ok(packages.iter().filter(is_linked).collect())
}

/// The texts of a package's licences.
fn licences(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut texts = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            texts.push(text.replace("\r\n", "\n").trim().to_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_name_linked_crates_only() {
        let text = text().unwrap();
        for linked in ["tokio ", "ring ", "libsqlite3-sys ", "zstd-safe "] {
            assert!(text.lines().any(|line| line.starts_with(linked)), "{linked}");
        }
        for other in ["cc ", "proptest ", "rcgen ", "forebay "] {
            assert!(!text.lines().any(|line| line.starts_with(other) && line.ends_with(')')), "{other}");
        }
    }
}
