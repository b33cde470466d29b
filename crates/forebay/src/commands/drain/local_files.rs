//! Files that would be deleted with the directory, and that delivery doesn't empty: stores, other files, and damaged parts of journals.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use config::Configuration;
use sink::local_path::is_own;

/// The journals of shards and of dead letters are in directories below these.
const JOURNALS: [&str; 2] = ["journal", "dead"];
/// The suffixes of files with the parts that recovery, or a repair, has cut off a journal.
const CUT_OFF: [&str; 3] = ["torn", "quarantined", "damaged"];
/// Every ext4 file system has this directory at its root.
const OF_FILE_SYSTEM: &str = "lost+found";

/// The stores, the other files and the damaged parts in the directory, one line for each.
///
/// # Errors
/// The directory can't be read.
pub(super) fn find(configuration: &Configuration, data: &Path) -> io::Result<Vec<String>> {
    let of_sinks = configuration.sinks.iter().filter_map(|(sink, settings)| Some((sink, settings.store.local_path()?)));
    let stores: Vec<_> = of_sinks.filter(|(_, path)| lies_in(path, data)).collect();
    let store = |(sink, path): &(_, &Path)| format!("{sink}  -  store  {}: is in the data directory", path.display());
    let mut lines: Vec<String> = stores.iter().map(store).collect();
    let others = others(data)?.into_iter().filter(|other| !stores.iter().any(|(_, path)| path.starts_with(other)));
    lines.extend(others.map(|path| format!("-  -  file  {}: isn't part of Forebay's own state", path.display())));
    let cut_off = cut_off(data)?.into_iter();
    lines.extend(cut_off.map(|path| format!("-  -  damaged  the damaged part is in {}", path.display())));
    Ok(lines)
}

/// Whether an existing file is in the directory, also by symbolic links or mounts. A file that can't be inspected is judged by its name.
pub(super) fn lies_in(path: &Path, data: &Path) -> bool {
    let is_data = |of: &Path| match (of.metadata(), data.metadata()) {
        (Ok(of), Ok(data)) => (of.dev(), of.ino()) == (data.dev(), data.ino()),
        _ => of == data,
    };
    match path.canonicalize() {
        Ok(path) => path.ancestors().any(is_data),
        Err(error) => error.kind() != io::ErrorKind::NotFound && path.starts_with(data),
    }
}

/// The files and directories that aren't Forebay's own, for instance a store that an earlier configuration had. A symbolic link counts as empty.
fn others(data: &Path) -> io::Result<Vec<PathBuf>> {
    let mut others = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        let name = entry.file_name();
        if !is_own(&name) && name != OF_FILE_SYSTEM && !entry.file_type()?.is_symlink() {
            others.push(entry.path());
        }
    }
    others.sort_unstable();
    Ok(others)
}

/// The files with damaged parts of the journals.
fn cut_off(data: &Path) -> io::Result<Vec<PathBuf>> {
    let is_cut_off = |path: &PathBuf| path.extension().is_some_and(|end| CUT_OFF.iter().any(|cut| end == *cut));
    let mut cut_off = Vec::new();
    for folder in JOURNALS {
        for journal in list(&data.join(folder))? {
            cut_off.extend(list(&journal)?.into_iter().filter(is_cut_off));
        }
    }
    cut_off.sort_unstable();
    Ok(cut_off)
}

fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}
