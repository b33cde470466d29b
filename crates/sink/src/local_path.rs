//! Paths of embedded stores in the data directory.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use settings::InvalidValue;

/// Forebay's own files and directories in its data directory.
const OWN: &[&str] = &[
    "aggregates",
    "dead",
    "duplicates",
    "journal",
    "ledger.0",
    "ledger.1",
    "ledger.new",
    "lock",
    "losses.0",
    "losses.1",
    "losses.new",
    "objects",
    "origin.0",
    "origin.1",
    "origin.new",
    "progress",
    "replays",
    "reserve",
    "tokens.json",
    "tokens.json.new",
    "tokens.lock",
];

/// Whether a file or a directory of this name in the data directory is Forebay's own.
#[must_use]
pub fn is_own(name: &OsStr) -> bool {
    OWN.iter().any(|own| name == *own)
}

/// The path without `.`.
#[must_use]
pub fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Rejects the data directory, and the paths of Forebay's own files within it.
///
/// # Errors
/// It is one of them.
pub fn refuse_own(path: &Path, data: &Path) -> Result<(), InvalidValue> {
    let (path, data) = (plain(path), plain(data));
    let within = path.strip_prefix(data).ok().map(|rest| rest.components().next());
    let is_own = within.is_some_and(|first| first.is_none_or(|first| is_own(first.as_os_str())));
    if is_own {
        return Err(InvalidValue::new("is where Forebay keeps its own files", "use another path"));
    }
    Ok(())
}
