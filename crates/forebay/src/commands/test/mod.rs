//! `forebay test`: cases next to the configuration, each a folder with input events and their expected output.

mod case;
mod difference;
mod folding;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use config::Configuration;
use settings::Environment;

use crate::configuration_report::{is_coloured, valid};
use case::{CASE_FILE, Case, Output};
use cli::EXIT_CONFIGURATION;
use cli::TestFlags;
use cli::errors::unreadable;
use cli::output::print;

/// The exit code if a case fails.
const EXIT_FAILED: u8 = 1;
/// The greatest depth of folders: without it, a link to a folder above would never end.
const FOLDERS_MAX: usize = 8;

/// Runs all cases and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(flags: &TestFlags, environment: &Environment) -> anyhow::Result<u8> {
    flags.common.warn_of_overlooked();
    let Some(configuration) = valid(flags.common.load(environment)) else { return Ok(EXIT_CONFIGURATION) };
    let mut folders = Vec::new();
    find(&flags.folder, FOLDERS_MAX, &mut folders)?;
    if folders.is_empty() {
        bail!("{} has no case: a case is a folder with a file case.toml", flags.folder.display());
    }
    let coloured = is_coloured(&io::stdout());
    let mut failed = 0;
    for folder in &folders {
        let result = run_case(folder, &configuration, flags.update, coloured);
        failed += usize::from(result.is_err());
        let (mark, more) = match &result {
            Ok(()) => ("ok    ", String::new()),
            Err(why) => ("FAILED", format!("\n{}", why.trim_end())),
        };
        print(|output| writeln!(output, "{mark}  {}{more}", folder.display()))?;
    }
    print(|output| writeln!(output, "{}, {failed} failed", text::counted(folders.len(), "case")))?;
    Ok(if failed == 0 { 0 } else { EXIT_FAILED })
}

/// Every folder with a case, in order.
fn find(folder: &Path, deep: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join(CASE_FILE).is_file() {
        found.push(folder.to_owned());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(unreadable(folder))?;
    entries.retain(|path| path.is_dir());
    entries.sort();
    entries.iter().filter(|_| deep > 0).try_for_each(|path| find(path, deep - 1, found))
}

/// Runs one case. The error is a message, or the difference.
fn run_case(folder: &Path, configuration: &Configuration, update: bool, coloured: bool) -> Result<(), String> {
    let as_text = |error: anyhow::Error| error.to_string();
    let case = Case::read(folder).map_err(as_text)?;
    let came_out = case.run(configuration).map_err(as_text)?;
    if update {
        return case.write(&came_out).map_err(as_text);
    }
    let mut differences = String::new();
    for name in Output::names([&case.expected, &came_out]) {
        let (expected, found) = (case.expected.text(&name), came_out.text(&name));
        if expected != found {
            differences += &format!("{name}\n{}", difference::of(expected, found, coloured));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}
