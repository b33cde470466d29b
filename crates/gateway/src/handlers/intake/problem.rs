//! Problems as protocols distinguish them, and the reverse.

use intake::{Problem as Rejection, ProblemKind};

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// The problem of a request, for its protocol.
pub(super) fn for_protocol(problem: &Problem) -> Rejection {
    Rejection { kind: kind(problem.code), code: problem.code.as_str(), detail: problem.detail.clone() }
}

/// What a protocol distinguishes. Every kind of temporary trouble is [`ProblemKind::Unavailable`]: other statuses than 503 are final for
/// some senders.
const fn kind(code: ErrorCode) -> ProblemKind {
    match code {
        ErrorCode::TooLarge | ErrorCode::TooManyRecords => ProblemKind::TooLarge,
        ErrorCode::ContentEncoding => ProblemKind::Unsupported,
        ErrorCode::Timeout => ProblemKind::Timeout,
        ErrorCode::Unauthorized => ProblemKind::Unauthorized,
        ErrorCode::Forbidden | ErrorCode::CrossOrigin => ProblemKind::Forbidden,
        ErrorCode::Signature => ProblemKind::Signature,
        ErrorCode::NotFound => ProblemKind::NotFound,
        ErrorCode::MethodNotAllowed => ProblemKind::Method,
        ErrorCode::Overload
        | ErrorCode::BacklogFull
        | ErrorCode::DiskFull
        | ErrorCode::JournalFailed
        | ErrorCode::NotReady
        | ErrorCode::StoreUnavailable => ProblemKind::Unavailable,
        _ => ProblemKind::Invalid,
    }
}

/// The problem that a protocol's module has found.
pub(super) fn of_protocol(rejection: Rejection) -> Refused {
    let code = match rejection.kind {
        ProblemKind::Invalid | ProblemKind::Empty => ErrorCode::Record,
        ProblemKind::Unauthorized => ErrorCode::Unauthorized,
        ProblemKind::Forbidden => ErrorCode::Forbidden,
        ProblemKind::Signature => ErrorCode::Signature,
        ProblemKind::TooLarge if rejection.code == ErrorCode::TooManyRecords.as_str() => ErrorCode::TooManyRecords,
        ProblemKind::TooLarge => ErrorCode::TooLarge,
        ProblemKind::Unsupported => ErrorCode::ContentEncoding,
        ProblemKind::NotFound => ErrorCode::NotFound,
        ProblemKind::Method => ErrorCode::MethodNotAllowed,
        ProblemKind::Timeout => ErrorCode::Timeout,
        ProblemKind::Unavailable => ErrorCode::Overload,
    };
    Problem::boxed(code, rejection.detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_trouble_is_retried() {
        let unavailable: Vec<&str> = ErrorCode::ALL
            .into_iter()
            .filter(|code| for_protocol(&Problem::new(*code, "")).status() == 503)
            .map(ErrorCode::as_str)
            .collect();
        let expected = ["overload", "backlog_full", "disk_full", "journal_failed", "not_ready", "store_unavailable"];
        assert_eq!(unavailable, expected);
    }
}
