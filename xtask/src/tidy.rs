//! `cargo xtask tidy`: the project's own rules, each a small function that a test shows failing.
//!
//! To add a rule: write a function from a [`Source`] to findings next to similar rules, add it to
//! [`SOURCE_RULES`], and give it a test with a bad and a good sample. A finding names what to write instead.

mod anchors;
mod bans;
mod code;
mod edges;
mod import_cycles;
mod line_links;
pub(crate) mod lines;
mod links;
pub(crate) mod messages;
mod page_blocks;
mod page_codes;
mod page_metrics;
mod page_paths;
mod page_tests;
mod printed_commands;
mod prose;
mod quoted_messages;
mod shape;
mod signatures;
mod source;
mod type_names;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;
pub(crate) use links::{map_links, page_links, resolve};
use source::Source;

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; 0 if the finding is about the whole file.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Rules that read one file at a time.
const SOURCE_RULES: &[fn(&Source) -> Vec<Finding>] = &[
    bans::banned_texts,
    printed_commands::literal_commands,
    shape::module_doc,
    shape::file_length,
    shape::module_names,
    signatures::lying_names,
    words::forbidden_words,
];

/// Checks every rule on the files that git knows or could be given.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root()?;
    let paths = files()?;
    let sources = read_sources(&root, &paths)?;
    let mut findings: Vec<_> =
        sources.iter().flat_map(|source| SOURCE_RULES.iter().flat_map(|rule| rule(source))).collect();
    let metadata = workspace::metadata()?;
    findings.extend(edges::forbidden_edges(&metadata)?);
    findings.extend(page_codes::undocumented_codes(&sources));
    findings.extend(page_metrics::unknown_metrics(&sources));
    findings.extend(page_paths::undocumented_paths(&sources));
    findings.extend(page_tests::dead_test_commands(&sources, &metadata, &root)?);
    findings.extend(page_blocks::broken_json(&sources));
    findings.extend(page_blocks::unknown_paths(&sources));
    findings.extend(import_cycles::import_cycles(&sources)?);
    findings.extend(links::broken_links(&sources, &|path| paths.contains(path) || root.join(path).is_dir()));
    findings.extend(links::unlinked_pages(&sources));
    findings.extend(line_links::misplaced_lines(&sources));
    findings.extend(type_names::repeated_types(&sources));
    findings.extend(anchors::broken_anchors(&sources));
    findings.extend(prose::breaches(&sources));
    findings.extend(quoted_messages::unknown_messages(&sources));
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} places break a rule of the project", findings.len());
    }
    println!("tidy: {} files, nothing to fix", sources.len());
    Ok(())
}

/// Commands of `cargo xtask` in pages that this definition doesn't have. A rule would need the commands, and one of them runs the rules.
#[cfg(test)]
pub(crate) fn unknown_xtask_commands(xtask: &clap::Command) -> Result<Vec<String>> {
    let sources = read_sources(&workspace::root()?, &files()?)?;
    Ok(page_blocks::unknown_xtask_commands(&sources, xtask).iter().map(ToString::to_string).collect())
}

/// Paths from the root, tracked or not yet, without ignored and removed ones.
fn files() -> Result<BTreeSet<String>> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let listed = workspace::output(Command::new("git").args(list)).context("tidy reads the files that git lists")?;
    let root = workspace::root()?;
    Ok(listed.split_terminator('\0').filter(|path| root.join(path).is_file()).map(str::to_owned).collect())
}

/// The paths of the texts that the project wrote.
pub(crate) fn our_texts() -> Result<Vec<String>> {
    Ok(files()?.into_iter().filter(|path| source::is_our_text(path)).collect())
}

fn read_sources(root: &Path, paths: &BTreeSet<String>) -> Result<Vec<Source>> {
    let texts = paths.iter().filter(|path| source::is_our_text(path));
    texts
        .map(|path| {
            let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))?;
            Ok(Source::new(path, text))
        })
        .collect()
}
