//! Decisions between batches, and about resends: each case.

use std::time::Duration;

use aggregation::Halt;
use sink::{RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

use super::super::{NextStep, Resent, dead_after_resend, is_batch_due, is_object_due, when_caught_up};
use super::ALONE_MAX;
use crate::log_cursor::FillResult;

const FILLS: [FillResult; 4] = [FillResult::Full, FillResult::CaughtUp, FillResult::Pause, FillResult::Midway];

#[test]
fn caught_up_lane_ends_when_its_work_is_done() {
    let next = |halt, has_read_all, has_deferred| when_caught_up(halt, has_read_all, || has_deferred);
    for (has_read_all, has_deferred) in [(false, false), (false, true), (true, false), (true, true)] {
        let done = if has_read_all { NextStep::End } else { NextStep::ReadOn };
        assert_eq!(next(Halt::No, has_read_all, has_deferred), NextStep::Idle);
        assert_eq!(next(Halt::WhenDone, has_read_all, has_deferred), done);
        assert_eq!(next(Halt::Now, has_read_all, has_deferred), done);
        assert_eq!(
            next(Halt::WhenDrained, has_read_all, has_deferred),
            if has_deferred { NextStep::Idle } else { done }
        );
    }
}

#[test]
fn batch_is_due_when_full_or_caught_up() {
    for (fill, bits) in FILLS.into_iter().flat_map(|fill| (0..8).map(move |bits| (fill, bits))) {
        let [has_records, is_old, needs_no_write] = [1, 2, 4].map(|bit| bits & bit != 0);
        let expected = match (fill, has_records) {
            (FillResult::Full, _) | (FillResult::CaughtUp, true) => true,
            (FillResult::Pause | FillResult::Midway, true) => false,
            (FillResult::CaughtUp | FillResult::Pause | FillResult::Midway, false) => is_old || needs_no_write,
        };
        assert_eq!(is_batch_due(fill, has_records, is_old, needs_no_write), expected, "{bits:#b}");
    }
}

#[test]
fn object_is_due_when_full_or_old() {
    for (fill, bits) in FILLS.into_iter().flat_map(|fill| (0..8).map(move |bits| (fill, bits))) {
        let [is_halted, has_waited, is_old] = [1, 2, 4].map(|bit| bits & bit != 0);
        let expected =
            fill == FillResult::Full || is_old || (fill == FillResult::CaughtUp && (is_halted || has_waited));
        assert_eq!(is_object_due(fill, is_halted, || has_waited, is_old), expected, "{bits:#b}");
    }
}

#[test]
fn every_answer_to_a_resend_is_decided() {
    let (rejected, retry) = (vec![rejected(1)], vec![retry(2, RetryScope::Unclear)]);
    let partial = WriteOutcome::Partial { refused: rejected.clone(), retry: retry.clone() };
    let accepted = |rejected, retry| Resent::Accepted { rejected, retry };
    for count in [1, 3] {
        let of = |answer| Resent::of(answer, count);
        assert_eq!(of(Ok(WriteOutcome::Committed)), accepted(Vec::new(), Vec::new()));
        assert_eq!(of(Ok(partial.clone())), accepted(rejected.clone(), retry.clone()));
        assert_eq!(of(Ok(WriteOutcome::Rejected { refused: rejected.clone() })), Resent::Outage);
        assert_eq!(of(Err(SinkError::Unavailable("down".into()))), Resent::Outage);
        assert_eq!(of(Err(SinkError::OtherStore(sink::Mark([3; 16])))), Resent::Outage);
        let apart = if count > 1 { Resent::SendApart } else { Resent::Outage };
        assert_eq!(of(Err(SinkError::Misconfigured("wrong".into()))), apart);
    }
}

#[test]
fn resent_event_is_dead_after_long_rejection() {
    let ages = [None, Some(ALONE_MAX - Duration::from_nanos(1)), Some(ALONE_MAX)];
    let dead = |rejected: &[RejectedRecord], retry: &[Retry], age| -> Vec<usize> {
        dead_after_resend(rejected, retry, |_| age, ALONE_MAX).into_iter().map(|(index, _)| index).collect()
    };
    for age in ages {
        let if_deferred = if age.is_some() { vec![4] } else { vec![] };
        assert_eq!(dead(&[rejected(4)], &[], age), if_deferred, "a higher revision may have ended it");
        for scope in [RetryScope::Record, RetryScope::Unclear, RetryScope::Store] {
            let is_old = age == Some(ALONE_MAX) && scope != RetryScope::Store;
            assert_eq!(dead(&[], &[retry(4, scope)], age), if is_old { vec![4] } else { vec![] }, "{scope:?}");
        }
    }
    let both = dead(&[rejected(1), rejected(5)], &[retry(3, RetryScope::Record)], Some(ALONE_MAX));
    assert_eq!(both, [1, 3, 5], "in order");
}

fn rejected(index: usize) -> RejectedRecord {
    RejectedRecord { index, reason: "no".into() }
}

fn retry(index: usize, scope: RetryScope) -> Retry {
    Retry { index, reason: "later".into(), scope }
}
