//! What a file system's errors mean for delivery, with advice for the operator.

use std::io::{self, ErrorKind};
use std::path::Path;

use objects::Manifest;
use sink::SinkError;

/// A file of the directory, or the directory itself, can't be created or read.
pub(super) fn of_io(folder: &Path, error: &io::Error) -> SinkError {
    let folder = folder.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            unavailable(format!("no space is left for files of directory {folder} ({error}): free space"))
        }
        ErrorKind::NotFound => unavailable(format!(
            "directory {folder} is missing ({error}): restore it, or mount its disk. Forebay retries, and no event is \
             lost"
        )),
        ErrorKind::WouldBlock => unavailable(format!(
            "another process, or a configuration that has just ended, is writing to directory {folder}. Forebay \
             retries"
        )),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => misconfigured(format!(
            "files can't be created in directory {folder} ({error}): it must be writable for the user that runs \
             Forebay"
        )),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => misconfigured(format!(
            "{folder} can't be used as a directory ({error}): this path or one above it is something else. Move that \
             away, or set another `path`"
        )),
        ErrorKind::InvalidFilename => misconfigured(format!(
            "directory {folder} rejects names as long as those of its files ({error}): use another file system, or a \
             shorter name of the sink"
        )),
        _ => unavailable(format!(
            "a file of directory {folder} couldn't be written or read ({error}): check its disk and the system's log"
        )),
    }
}

/// Another file has the object's name.
pub(super) fn name_conflict(object: &Path, manifest: &Manifest) -> SinkError {
    misconfigured(format!(
        "{} exists, but differs from positions {} to {} of shard {}: it was changed, or the data directory is an older \
         copy. Compare it with your copy, then move it. Forebay writes it again",
        object.display(),
        manifest.first,
        manifest.last,
        manifest.lane.shard
    ))
}

/// Another file has the name of an object that a gateway sends.
pub(super) fn upload_conflict(object: &Path) -> SinkError {
    misconfigured(format!(
        "{} exists, but differs from the gateway's object: it was changed, or the gateway's data directory is an older \
         copy. Compare it with your copy, then move it away. The gateway resends the object",
        object.display()
    ))
}

/// The upload had fewer bytes than announced, or others.
pub(super) fn damaged(object: &Path) -> SinkError {
    unavailable(format!(
        "object {} was truncated or damaged between the gateway and the writer. Nothing was stored, and the gateway \
         resends it",
        object.display()
    ))
}

/// The caller no longer waits for the object.
pub(super) fn abandoned(object: &Path) -> SinkError {
    unavailable(format!("{} was interrupted, and is written again later", object.display()))
}

/// The thread ended without a result.
pub(super) fn cancelled(folder: &Path) -> SinkError {
    unavailable(format!(
        "writing to directory {} ended without a result. If Forebay isn't stopping, please report this as a bug",
        folder.display()
    ))
}

fn misconfigured(reason: String) -> SinkError {
    SinkError::Misconfigured(reason.into())
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}
