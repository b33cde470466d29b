//! `forebay test`: cases beside the configuration, each a folder with what comes in, and what is expected to become of it.

mod case;
mod difference;
mod folding;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use config::{self, Configuration};
use settings::Environment;

use crate::cli::TestFlags;
use crate::commands::output::Output;
use crate::configuration_report::{EXIT_CONFIGURATION, is_coloured, valid};
use case::{CASE_FILE, Case, CaseError, Output as CaseOutput};

/// What the process exits with where a case fails.
const EXIT_FAILED: u8 = 1;
/// Folders within each other: deeper ones aren't looked into, so that a link to a folder above ends.
const FOLDERS_MAX: usize = 8;

/// Why cases can't be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TestError {
    /// A folder can't be read.
    #[error("can't read {path}: {source}")]
    Read {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There are none.
    #[error("{0} has no case: a case is a folder with a file case.toml")]
    Empty(PathBuf),
    /// The output can't be written.
    #[error("can't write: {0}")]
    Write(#[from] io::Error),
}

/// Runs all cases and gives the process's exit code.
///
/// # Errors
/// [`TestError`] says what stands in the way.
pub(crate) fn run(flags: &TestFlags, environment: &Environment) -> Result<u8, TestError> {
    flags.common.warn_of_overlooked();
    let Some(configuration) = valid(flags.common.load(environment)) else { return Ok(EXIT_CONFIGURATION) };
    let mut folders = Vec::new();
    find(&flags.folder, FOLDERS_MAX, &mut folders)?;
    if folders.is_empty() {
        return Err(TestError::Empty(flags.folder.clone()));
    }
    let mut output = Output::lock();
    let coloured = is_coloured(&io::stdout());
    let mut failed = 0;
    for folder in &folders {
        let said = run_case(folder, &configuration, flags.update, coloured);
        failed += usize::from(said.is_err());
        let (mark, more) = match &said {
            Ok(()) => ("ok    ", String::new()),
            Err(why) => ("FAILED", format!("\n{}", why.trim_end())),
        };
        writeln!(output, "{mark}  {}{more}", folder.display())?;
    }
    writeln!(output, "{} cases, {failed} failed", folders.len())?;
    Ok(if failed == 0 { 0 } else { EXIT_FAILED })
}

/// Every folder with a case, in order.
fn find(folder: &Path, deep: usize, found: &mut Vec<PathBuf>) -> Result<(), TestError> {
    let unreadable = |source| TestError::Read { path: folder.to_owned(), source };
    if folder.join(CASE_FILE).is_file() {
        found.push(folder.to_owned());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(unreadable)?;
    entries.retain(|path| path.is_dir());
    entries.sort();
    entries.iter().filter(|_| deep > 0).try_for_each(|path| find(path, deep - 1, found))
}

/// Runs one case; what is wrong is told in words, or as what differs.
fn run_case(folder: &Path, configuration: &Configuration, update: bool, coloured: bool) -> Result<(), String> {
    let told = |error: CaseError| error.to_string();
    let case = Case::read(folder).map_err(told)?;
    let came_out = case.run(configuration).map_err(told)?;
    if update {
        return case.write(&came_out).map_err(told);
    }
    let mut differences = String::new();
    for name in CaseOutput::names([&case.expected, &came_out]) {
        let (expected, found) = (case.expected.text(&name), came_out.text(&name));
        if expected != found {
            differences += &format!("{name}\n{}", difference::of(expected, found, coloured));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}
