//! Import cycles: at every level of a crate, sibling modules, each with all modules below it, form a graph without a
//! cycle. A child may name its ancestors' own items, and a parent its children's.
//!
//! Counted are `use`, paths within code, macros' tokens and inherent methods; a re-export counts as an import from the
//! module that defines the item. What exists in tests only isn't.

mod cfg_test;
mod graph;
mod modules;
mod names;
mod references;
mod std_methods;
#[cfg(test)]
mod tests;
mod usages;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;
use super::code::{code_only, is_word};
use graph::{Cycle, Edges};
use modules::{Files, Module};

/// The rule, for all crates below the root.
pub(super) fn findings(root: &Path) -> Result<Vec<Finding>> {
    let crates = Crates::read(root)?;
    let mut findings = Vec::new();
    for folder in crates.sources.keys() {
        let finding = |message| Finding { path: folder.clone(), line: 0, message };
        findings.extend(crates.reports(folder)?.into_iter().map(finding));
    }
    Ok(findings)
}

/// The crates of a tree.
struct Crates {
    /// The sources of each, by its folder.
    sources: BTreeMap<String, Files>,
    /// The names of the functions of each, by its folder.
    functions: BTreeMap<String, BTreeSet<String>>,
}

impl Crates {
    fn read(root: &Path) -> Result<Self> {
        let mut crates = Self { sources: BTreeMap::new(), functions: BTreeMap::new() };
        for folder in crate_folders(root)? {
            let files = read_sources(&root.join(&folder))?;
            let mut functions = BTreeSet::new();
            files.values().for_each(|text| function_names(text, &mut functions));
            crates.functions.insert(folder.clone(), functions);
            crates.sources.insert(folder, files);
        }
        Ok(crates)
    }

    /// A description of each cycle of one crate, with what ties it.
    fn reports(&self, folder: &str) -> Result<Vec<String>> {
        let files = self.sources.get(folder).with_context(|| format!("there is no crate in {folder}"))?;
        let others = self.functions.iter().filter(|(other, _)| other.as_str() != folder);
        let elsewhere = others.flat_map(|(_, functions)| functions.iter().cloned()).collect();
        reports_of(files, &elsewhere)
    }
}

/// A description of each cycle of one crate of a tree.
pub(super) fn reports(root: &Path, folder: &str) -> Result<Vec<String>> {
    Crates::read(root)?.reports(folder)
}

fn reports_of(files: &Files, elsewhere: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut reports = Vec::new();
    let is_root = |file: &&String| {
        ["src/lib.rs", "src/main.rs"].contains(&file.as_str())
            || file.strip_prefix("src/bin/").is_some_and(|name| !name.contains('/') || name.ends_with("/main.rs"))
    };
    for target in files.keys().filter(is_root) {
        let modules = modules::read(files, target)?;
        let edges = usages::edges(&modules, elsewhere);
        reports.extend(graph::cycles(&modules, &edges).iter().map(|cycle| described(&modules, &edges, cycle)));
    }
    Ok(reports)
}

/// The members in an order, and every import between them; those against the order are marked, as one of each pair
/// of them has to go.
fn described(modules: &[Module], edges: &Edges, cycle: &Cycle) -> String {
    let parent = &modules[cycle.parent];
    let members: Vec<&str> = cycle.members.iter().map(|member| modules[*member].name.as_str()).collect();
    let mut text = format!("{}: import cycle of {} modules: {}", parent.file, members.len(), members.join(", "));
    let position = |module: usize| cycle.members.iter().position(|member| *member == module);
    let mut lines = Vec::new();
    for ((from, to), taken) in edges {
        let Some((level, above, below)) = graph::siblings(modules, *from, *to) else { continue };
        let (Some(above), Some(below), true) = (position(above), position(below), level == cycle.parent) else {
            continue;
        };
        let names: Vec<String> = taken.iter().map(|(name, line)| format!("{name} ({line})")).collect();
        let mark = if above > below { "upward" } else { "      " };
        lines.push(format!("  {mark} {} -> {}: {}", modules[*from].file, modules[*to].file, names.join(", ")));
    }
    lines.sort();
    for line in lines {
        let _ = write!(text, "\n{line}");
    }
    text
}

/// Folders of our crates, from the root.
fn crate_folders(root: &Path) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    let mut open = ["bench", "crates", "xtask"].map(str::to_owned).to_vec();
    while let Some(folder) = open.pop() {
        let path = root.join(&folder);
        if path.join("Cargo.toml").is_file() {
            folders.push(folder);
        } else if path.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))? {
                open.push(format!("{folder}/{}", entry?.file_name().to_string_lossy()));
            }
        }
    }
    folders.sort();
    Ok(folders)
}

/// The files below `src/`.
fn read_sources(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut open = vec!["src".to_owned()];
    while let Some(name) = open.pop() {
        let path = folder.join(&name);
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))? {
                open.push(format!("{name}/{}", entry?.file_name().to_string_lossy()));
            }
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            files.insert(name, text);
        }
    }
    Ok(files)
}

/// The names of functions in a text, found without parsing it.
fn function_names(text: &str, names: &mut BTreeSet<String>) {
    for (at, _) in code_only(text).match_indices("fn ") {
        let name = text[at + 3..].split(|letter| !is_word(letter)).next().unwrap_or_default();
        names.insert(name.to_owned());
    }
}
