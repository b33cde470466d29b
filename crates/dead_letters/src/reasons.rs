//! The reasons of dead letters that Forebay itself gives, and the code of each reason for clients.

use std::fmt::Display;

use eventlog::DeadLetterReason;
use ledger::CONDITION_FAILED;

/// An event that was deferred for a store of another kind.
pub const SINK_CHANGED: &str =
    "it was deferred, and its sink's store is now of another kind, which does not accept it out of order: replay it";
const NOT_IN_TIME: [&str; 2] = ["not stored in ", " s while other records of its batch were; last: "];

/// The same texts in journals of earlier versions.
const OLD_SINK_CHANGED: &str =
    "it was set aside, and the store of its sink is of another kind now, which doesn't take it out of order: replay it";
const OLD_NOT_IN_TIME: [&str; 2] = ["not taken in ", " s while its neighbours were; last: "];

/// The store accepted other records of the batch, and not this one.
pub fn not_stored_in_time(seconds: u64, last: &impl Display) -> String {
    let [start, others_were] = NOT_IN_TIME;
    format!("{start}{seconds}{others_were}{last}")
}

/// The code of a reason. A reason that is not known here is the store's.
pub(crate) fn code(reason: &str) -> DeadLetterReason {
    let is_not_in_time = |[start, others_were]: [&str; 2]| {
        let seconds = reason.strip_prefix(start).and_then(|rest| rest.split_once(others_were));
        seconds.is_some_and(|(seconds, _)| seconds.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if reason.starts_with(CONDITION_FAILED) {
        DeadLetterReason::ConditionFailed
    } else if is_not_in_time(NOT_IN_TIME) || is_not_in_time(OLD_NOT_IN_TIME) {
        DeadLetterReason::NotStoredInTime
    } else if [SINK_CHANGED, OLD_SINK_CHANGED].contains(&reason) {
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
            (OLD_NOT_IN_TIME.join("90"), DeadLetterReason::NotStoredInTime),
            (SINK_CHANGED.to_owned(), DeadLetterReason::SinkChanged),
            (OLD_SINK_CHANGED.to_owned(), DeadLetterReason::SinkChanged),
            ("table invoices has no column iban".to_owned(), DeadLetterReason::RejectedByStore),
            (
                "not stored in a hurry while other records of its batch were".to_owned(),
                DeadLetterReason::RejectedByStore,
            ),
            (String::new(), DeadLetterReason::RejectedByStore),
        ] {
            assert_eq!(super::code(&reason), code, "{reason}");
        }
    }
}
