//! Creates directories that survive a power cut.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Creates a directory and its parents, each durable before it is used. That includes existing ones: the process that
/// created them may not have synced them.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return match sync_folder(above) {
            // The process may not read the directory, so it has not created it; and some file systems sync no
            // directories.
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
        // A second sync might succeed without effect, so the next attempt creates it again.
        let _ = fs::remove_dir(folder);
    })
}

/// Makes the names in a directory durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
