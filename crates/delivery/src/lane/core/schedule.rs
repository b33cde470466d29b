//! Decides what a lane does between two batches.

use aggregation::Halt;

use crate::log_cursor::FillResult;

/// The next step of a lane that has read the log to its end and has written what was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// The lane has done what it was asked to do before it stops.
    End,
    /// More events are durable, and the lane doesn't wait for others.
    ReadOn,
    /// The lane waits for events, a time, or a command.
    Idle,
}

/// `has_read_all`: the lane has read all durable events. `has_deferred`: the lane has deferred events, which a drain
/// waits for.
pub(crate) fn when_caught_up(halt: Halt, has_read_all: bool, has_deferred: impl FnOnce() -> bool) -> NextStep {
    match halt {
        Halt::No => NextStep::Idle,
        Halt::WhenDrained if has_deferred() => NextStep::Idle,
        Halt::WhenDone | Halt::WhenDrained | Halt::Now if has_read_all => NextStep::End,
        Halt::WhenDone | Halt::WhenDrained | Halt::Now => NextStep::ReadOn,
    }
}

/// Whether a batch that covers some positions is written now. `is_old`: it is old enough to move the store's cursor, or
/// the lane has to stop. `needs_no_write`: the store has all of the batch, or keeps no cursor and there is no record.
pub(crate) fn is_batch_due(fill: FillResult, has_records: bool, is_old: bool, needs_no_write: bool) -> bool {
    match fill {
        FillResult::Full => true,
        FillResult::CaughtUp if has_records => true,
        FillResult::CaughtUp | FillResult::Pause | FillResult::Midway => !has_records && (is_old || needs_no_write),
    }
}

/// Whether the gathered objects are written now. `is_old`: their first event was read long enough ago. `has_waited`: it
/// was received long enough ago, which counts if the log has no event that would make them larger.
pub(crate) fn is_object_due(
    fill: FillResult,
    is_halted: bool,
    has_waited: impl FnOnce() -> bool,
    is_old: bool,
) -> bool {
    match fill {
        FillResult::Full => true,
        FillResult::CaughtUp => is_halted || is_old || has_waited(),
        FillResult::Pause | FillResult::Midway => is_old,
    }
}
