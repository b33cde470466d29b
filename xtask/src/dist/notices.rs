//! The licences of all packages that are linked into the binary. They require that the binary's distribution contains them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::static_build::triple;
use crate::workspace::{cargo, output};

const HEADER: &str = "Forebay is under the Apache License 2.0, see LICENSE. Its binary contains the packages below, each under the licence below\n\
    it; the Rust standard library (MIT or Apache-2.0); and, where it is linked statically, the GNU C library (LGPL-2.1 or later), whose\n\
    source is at https://sourceware.org/glibc. The source of Forebay lets anybody link it with another version of that library.\n";
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
    fn list(value: &Value) -> &[Value] {
        value.as_array().map(Vec::as_slice).unwrap_or_default()
    }
    let packages: HashMap<&str, &Value> =
        list(&metadata["packages"]).iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes: HashMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let own = packages.iter().find(|(_, package)| package["name"] == "forebay").context("no package forebay")?;
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![*own.0]);
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let used = nodes.get(id).map(|node| list(&node["deps"])).unwrap_or_default();
        let is_linked = |used: &&Value| list(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        waiting.extend(used.iter().filter(is_linked).filter_map(|used| used["pkg"].as_str()));
    }
    Ok(seen.iter().filter_map(|id| packages.get(id).copied()).filter(|package| !package["source"].is_null()).collect())
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
    fn what_is_linked_is_named_and_what_builds_is_not() {
        let text = text().unwrap();
        for linked in ["tokio ", "ring ", "libsqlite3-sys ", "zstd-safe "] {
            assert!(text.lines().any(|line| line.starts_with(linked)), "{linked}");
        }
        for other in ["cc ", "proptest ", "rcgen ", "forebay "] {
            assert!(!text.lines().any(|line| line.starts_with(other) && line.ends_with(')')), "{other}");
        }
    }
}
