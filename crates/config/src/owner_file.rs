//! Small files that only their owner may read, replaced atomically: a reader sees the old file or the new one, also after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Tokens are secrets. Their digests are not, but other users need not read them.
pub const OWNER_ONLY: u32 = 0o600;

/// The path with another ending appended.
pub fn next_to(path: &Path, ending: &str) -> PathBuf {
    let mut next_to = path.to_owned().into_os_string();
    next_to.push(".");
    next_to.push(ending);
    next_to.into()
}

/// Creates a file for its owner. A file that a crash has left there, which may have other permissions, is removed.
///
/// # Errors
/// A system call failed.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().create_new(true).write(true).mode(OWNER_ONLY).open(path)
}

/// Replaces the file. The new one is durable when this returns.
///
/// # Errors
/// A system call failed. The path then has the old file or the new one.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = next_to(path, "new");
    let mut file = create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(above(path))
}

/// The directory of a file.
pub fn above(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the entries of a directory durable, and the directory's own entry if its parent is readable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    match File::open(above(directory)).and_then(|above| above.sync_all()) {
        // Forebay has created nothing in a directory that it may not open.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}
