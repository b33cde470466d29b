//! The reasons of dead letters that Forebay itself gives, and the code of each reason for clients.

use std::fmt::Display;

use eventlog::DeadLetterReason;
use ledger::CONDITION_FAILED;

/// An event that was deferred for a store of another kind.
pub const SINK_CHANGED: &str =
    "it was deferred, and the store of its sink is of another kind now, which doesn't take it out of order: replay it";
const NOT_IN_TIME: &str = "not taken in ";
const WHILE_NEIGHBOURS_WERE: &str = " s while its neighbours were; last: ";

/// The store accepted the neighbours of a record, and not the record.
pub fn not_stored_in_time(seconds: u64, last: &impl Display) -> String {
    format!("{NOT_IN_TIME}{seconds}{WHILE_NEIGHBOURS_WERE}{last}")
}

/// The code of a reason. A reason that isn't known here is the store's.
pub(crate) fn code(reason: &str) -> DeadLetterReason {
    let is_not_in_time = || {
        let (seconds, _) = reason.strip_prefix(NOT_IN_TIME)?.split_once(WHILE_NEIGHBOURS_WERE)?;
        Some(seconds.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if reason.starts_with(CONDITION_FAILED) {
        DeadLetterReason::ConditionFailed
    } else if is_not_in_time() == Some(true) {
        DeadLetterReason::NotStoredInTime
    } else if reason == SINK_CHANGED {
        DeadLetterReason::SinkChanged
    } else {
        DeadLetterReason::RejectedByStore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_code() {
        for (reason, code) in [
            (format!("{CONDITION_FAILED}a is text"), DeadLetterReason::ConditionFailed),
            (not_stored_in_time(90, &"database is locked"), DeadLetterReason::NotStoredInTime),
            (SINK_CHANGED.to_owned(), DeadLetterReason::SinkChanged),
            ("table invoices has no column iban".to_owned(), DeadLetterReason::RejectedByStore),
            (format!("{NOT_IN_TIME}a hurry{WHILE_NEIGHBOURS_WERE}x"), DeadLetterReason::RejectedByStore),
            (String::new(), DeadLetterReason::RejectedByStore),
        ] {
            assert_eq!(super::code(&reason), code, "{reason}");
        }
    }
}
