//! Makes directories so they survive a power cut.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes a directory and those above it, each durable before it is used: also one that is there already, because the
/// process that made it may not have come to it.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return match sync_folder(above) {
            // Nobody made it there who may not even look; and some file systems sync no directories.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => Ok(()),
            synced => synced,
        };
    }
    make_folder(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_folder(above).inspect_err(|_| {
        // To sync it again might succeed for nothing: the next attempt makes it again.
        let _ = fs::remove_dir(folder);
    })
}

/// Makes the names in a directory durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
