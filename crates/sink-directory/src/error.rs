//! What a file system's errors mean for delivery, in words for the person who must act.

use std::io::{self, ErrorKind};
use std::path::Path;

use objects::Manifest;
use sink::SinkError;

/// A file of the directory, or the directory itself, can't be made or read.
pub(super) fn of_io(folder: &Path, error: &io::Error) -> SinkError {
    let folder = folder.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            unavailable(format!("no space is left for files of directory {folder} ({error}): make room"))
        }
        ErrorKind::NotFound => unavailable(format!(
            "directory {folder} is gone ({error}): bring it back, or mount what it is on; nothing is lost meanwhile"
        )),
        ErrorKind::WouldBlock => unavailable(format!(
            "directory {folder} is being written to by another process, or by a configuration that has just ended: it is \
             tried again"
        )),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => misconfigured(format!(
            "files can't be made in directory {folder} ({error}): it must be writable for the user that runs Forebay"
        )),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => misconfigured(format!(
            "{folder} can't be used as a directory ({error}): something else has this path or one above it; move that \
             away, or configure another path"
        )),
        ErrorKind::InvalidFilename => misconfigured(format!(
            "directory {folder} doesn't take names as long as those of its files ({error}): configure one on another \
             file system, or give the sink a shorter name"
        )),
        _ => unavailable(format!(
            "a file of directory {folder} couldn't be written or read ({error}): look at its disk and the system's log"
        )),
    }
}

/// Something else has the object's name.
pub(super) fn taken(object: &Path, manifest: &Manifest) -> SinkError {
    misconfigured(format!(
        "{} is there already, and isn't what positions {} to {} of shard {} give: it was changed, or the data directory \
         is an older copy. Compare it with a copy of your own, then move it away: it is written anew",
        object.display(),
        manifest.first,
        manifest.last,
        manifest.lane.shard
    ))
}

/// Something else has the name of an object that a gateway sends.
pub(super) fn taken_by_other(object: &Path) -> SinkError {
    misconfigured(format!(
        "{} is there already, and isn't what the gateway sends: it was changed, or the gateway's data directory is an older \
         copy. Compare it with a copy of your own, then move it away: the gateway sends the object again",
        object.display()
    ))
}

/// Fewer bytes came than were announced, or others.
pub(super) fn damaged(object: &Path) -> SinkError {
    unavailable(format!(
        "object {} was cut or damaged on its way from the gateway: nothing of it was stored, and the gateway sends it again",
        object.display()
    ))
}

/// Whoever wanted the object has left.
pub(super) fn abandoned(object: &Path) -> SinkError {
    unavailable(format!("{} was broken off and is written again later", object.display()))
}

/// The thread ended before it answered.
pub(super) fn unanswered(folder: &Path) -> SinkError {
    unavailable(format!(
        "writing to directory {} ended without an answer: Forebay is stopping, or has a bug, then please report it",
        folder.display()
    ))
}

fn misconfigured(reason: String) -> SinkError {
    SinkError::Misconfigured(reason.into())
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}
