//! Finds saved states that a configuration can't use: their open windows would be discarded.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use eventlog::{DataDirectory, list_directory};

use crate::checkpoint::{CheckpointFile, Found};
use crate::manager::FOLDER;
use crate::setup::AggregateSetup;

/// The saved state of an aggregate that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableState {
    /// The type of the aggregate's results.
    pub name: String,
    /// The path of its files without the number of the generation.
    pub path: PathBuf,
    /// Why it can't be used, to follow the aggregate's name.
    pub reason: String,
}

/// The saved states that none of these aggregates can use. It changes nothing.
///
/// # Errors
/// The file system failed.
pub fn unusable_states(directory: &DataDirectory, setups: &[AggregateSetup]) -> io::Result<Vec<UnusableState>> {
    let folder = directory.path().join(FOLDER);
    let files = list_directory(&**directory.disk(), &folder)?;
    // The temporary file of an interrupted write is no generation.
    let stem = |file: &String| file.strip_suffix(".0").or_else(|| file.strip_suffix(".1")).map(str::to_owned);
    let stems: BTreeSet<String> = files.iter().filter_map(stem).collect();
    let mut unusable = Vec::new();
    for stem in stems {
        let Some((name, _)) = stem.rsplit_once('@') else { continue };
        let path = folder.join(&stem);
        let reason = match setups.iter().find(|setup| setup.file_name() == stem) {
            None if setups.iter().any(|setup| stem.starts_with(&setup.file_prefix())) => {
                "has another definition in this configuration".to_owned()
            }
            None => "isn't in this configuration".to_owned(),
            Some(setup) => {
                let reserve = directory.reserve().clone();
                let opened = CheckpointFile::open(directory.disk().clone(), &folder, &stem, reserve, &setup.rules)?;
                let Found::None(reason) = opened.1 else { continue };
                format!("has lost its state ({})", reason.unwrap_or_else(|| "its state file is missing".to_owned()))
            }
        };
        unusable.push(UnusableState { name: name.to_owned(), path, reason });
    }
    Ok(unusable)
}
