//! Small files for their owner alone, written as a whole: a reader sees the old one or the new one, also after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Tokens are secrets; their digests are none, but nobody's business either.
pub(crate) const OWNER_ONLY: u32 = 0o600;

/// The path with one more ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".");
    beside.push(ending);
    beside.into()
}

/// Writes the file anew; it is durable when this returns.
///
/// # Errors
/// Those of the operating system. The file is the old one or the new one then.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path, "new");
    // What a crash has left may have other permissions.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(OWNER_ONLY).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(above(path))
}

fn above(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a directory durable, and the directory's own as far as it can be.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    match File::open(above(directory)).and_then(|above| above.sync_all()) {
        // Nothing of ours was made in a directory that we may not open.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}
