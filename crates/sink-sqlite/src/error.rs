//! What SQLite's errors mean for delivery, with advice for the operator.

use std::fmt::Display;
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
            "SQLite file {path} is locked by another connection ({error}): end its transaction. Forebay retries, and \
             no event is lost"
        )),
        Some(Code::DiskFull) => unavailable(format!("no space is left for SQLite file {path} ({error}): free space")),
        Some(Code::SystemIoFailure) => unavailable(format!(
            "SQLite file {path} couldn't be read or written ({error}): check its disk and the system's log"
        )),
        Some(Code::CannotOpen | Code::ReadOnly | Code::PermissionDenied) => misconfigured(format!(
            "SQLite file {path} can't be opened for writing ({error}): the file and its directory must be writable \
             for the user that runs Forebay"
        )),
        Some(Code::NotADatabase | Code::DatabaseCorrupt) => misconfigured(format!(
            "SQLite file {path} is damaged or not a database ({error}): move it aside or restore it; `pragma \
             integrity_check` shows details"
        )),
        Some(Code::OutOfMemory) => unavailable(format!("SQLite file {path}: {error}: give the process more memory")),
        Some(Code::FileLockingProtocolFailed | Code::OperationInterrupted | Code::SchemaChanged) => {
            unavailable(format!("SQLite file {path}: {error}: Forebay resends the batch"))
        }
        _ => misconfigured(format!(
            "SQLite file {path} rejects what Forebay writes ({error}): alter its tables as docs/reference/configuration/sinks.md \
             describes, or set another `table`"
        )),
    }
}

/// Whether the connection is still good: another one holds a lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The directory couldn't be created.
pub(super) fn no_directory(path: &Path, error: &io::Error) -> SinkError {
    misconfigured(format!("the directory of SQLite file {} can't be created ({error}): create it", path.display()))
}

/// Why a page can't be read, for the operator.
pub(super) fn of_read(path: &Path, error: &rusqlite::Error) -> ReadError {
    unreadable(format!("SQLite file {} can't be read ({error}): if it is damaged, the log has details", path.display()))
}

/// The thread of a read ended without an answer, or couldn't begin.
pub(super) fn no_answer_to_read(path: &Path, error: &dyn Display) -> ReadError {
    unreadable(format!(
        "a read of SQLite file {} ended without an answer ({error}). Please report this as a bug",
        path.display()
    ))
}

fn unreadable(reason: String) -> ReadError {
    ReadError::Unavailable(reason.into())
}

/// The file has less than was stored in it.
pub(super) fn lost_tail(path: &Path, position: u64, stored: u64) -> SinkError {
    unavailable(format!(
        "SQLite file {}: the lane's cursor is {position}, but {stored} was stored before: it is another file, or an \
         older copy. Forebay reads the cursor again before the next write",
        path.display()
    ))
}

/// The file holds the claim of another process on the lane.
pub(super) fn claimed(path: &Path) -> SinkError {
    unavailable(format!("SQLite file {}: {CLAIMED_BY_ANOTHER}", path.display()))
}

/// The operating system couldn't start a thread.
pub(super) fn no_thread(path: &Path, error: &io::Error) -> SinkError {
    unavailable(format!(
        "can't start a thread for SQLite file {} ({error}): raise the limit of threads",
        path.display()
    ))
}

/// The thread ended without a result.
pub(super) fn unanswered(path: &Path) -> SinkError {
    unavailable(format!(
        "the thread of SQLite file {} ended without a result. Please report this as a bug; the next call starts \
         another thread",
        path.display()
    ))
}

pub(super) fn misconfigured(reason: String) -> SinkError {
    SinkError::Misconfigured(reason.into())
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}
