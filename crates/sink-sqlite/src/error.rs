//! What SQLite's errors mean for delivery, in words for the person who must act.

use std::io;
use std::path::Path;

use event::read::ReadError;
use rusqlite::ErrorCode;

use sink::CLAIMED_BY_ANOTHER;
use sink::SinkError;

/// Sorts an error of SQLite that concerns a whole call.
pub(super) fn classify(path: &Path, error: &rusqlite::Error) -> SinkError {
    use ErrorCode as Code;
    let path = path.display();
    match error.sqlite_error_code() {
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => unavailable(format!(
            "SQLite file {path} is locked by another connection ({error}): end its transaction, nothing is lost meanwhile"
        )),
        Some(Code::DiskFull) => unavailable(format!("no space is left for SQLite file {path} ({error}): make room")),
        Some(Code::SystemIoFailure) => unavailable(format!(
            "SQLite file {path} couldn't be read or written ({error}): look at its disk and the system's log"
        )),
        Some(Code::CannotOpen | Code::ReadOnly | Code::PermissionDenied) => misconfigured(format!(
            "SQLite file {path} can't be opened for writing ({error}): the file and its directory must be writable \
             for the user that runs Forebay"
        )),
        Some(Code::NotADatabase | Code::DatabaseCorrupt) => misconfigured(format!(
            "SQLite file {path} is damaged or something else ({error}): move it aside or restore it, \
             `pragma integrity_check` tells more"
        )),
        Some(Code::OutOfMemory) => unavailable(format!("SQLite file {path}: {error}: give the process more memory")),
        Some(Code::FileLockingProtocolFailed | Code::OperationInterrupted | Code::SchemaChanged) => {
            unavailable(format!("SQLite file {path}: {error}: the batch is sent again"))
        }
        _ => misconfigured(format!(
            "SQLite file {path} doesn't take what Forebay writes ({error}): make its tables what the manual says, \
             or configure another table"
        )),
    }
}

/// Whether the connection is as good as before: another one was in the way.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The directory couldn't be made.
pub(super) fn no_directory(path: &Path, error: &io::Error) -> SinkError {
    misconfigured(format!("the directory of SQLite file {} can't be made ({error}): make it", path.display()))
}

/// Why a page can't be read, in words for the operator.
pub(super) fn of_read(path: &Path, error: &rusqlite::Error) -> ReadError {
    unreadable(format!("SQLite file {} can't be read ({error}): the writer says more if it is damaged", path.display()))
}

fn unreadable(reason: String) -> ReadError {
    ReadError::Unavailable(reason.into())
}

/// The file has less than was stored in it.
pub(super) fn lost_tail(path: &Path, position: u64, stored: u64) -> SinkError {
    unavailable(format!(
        "SQLite file {} has a lane up to position {position}, and {stored} was stored: it is another file now, or an \
         older copy; the lane's place is to be asked for again",
        path.display()
    ))
}

/// The file holds the claim of another process on the lane.
pub(super) fn claimed(path: &Path) -> SinkError {
    unavailable(format!("SQLite file {}: {CLAIMED_BY_ANOTHER}", path.display()))
}

/// The operating system gave no thread.
pub(super) fn no_thread(path: &Path, error: &io::Error) -> SinkError {
    unavailable(format!("no thread for SQLite file {} ({error}): raise the limit on threads", path.display()))
}

/// The thread ended before it answered.
pub(super) fn unanswered(path: &Path) -> SinkError {
    unavailable(format!(
        "the thread that owns SQLite file {} ended without an answer, which is a bug: please report it; \
         the next call starts another",
        path.display()
    ))
}

pub(super) fn misconfigured(reason: String) -> SinkError {
    SinkError::Misconfigured(reason.into())
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}
