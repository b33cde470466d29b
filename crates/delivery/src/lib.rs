//! Delivery: brings events from the event log to the sinks, on a thread of its own. Batching, retry, dead letters, cursors
//! and the ledger exist once, here; a sink only writes.
//!
//! A *lane* (`lane/`) reads one shard for one sink, and writes one batch at a time. It counts the outcomes in the [`Ledger`]. The
//! *checkpointer* (`retention/`) saves the ledger with all cursors in one file, and frees the segments that no cursor needs. Aggregates read
//! the same way, and append their results to the log (`aggregates/`). The *supervisor* (`supervisor/`) runs all of them.

mod aggregates;
mod backoff;
mod blocked;
mod command;
mod dead_letter_reasons;
mod dead_letters;
mod delivery;
mod due;
mod failover_window;
mod halt;
mod home;
mod lane;
mod lane_tasks;
mod log_cursor;
mod log_throttle;
mod objects;
mod options;
mod retention;
mod sent_record;
mod setup;
mod start_error;
mod status;
mod status_source;
mod supervisor;
#[cfg(test)]
mod tests;

pub use aggregates::{
    AggregateBoard, AggregateFigures, AggregateSetup, AggregateStatus, UnusableState, unusable_states,
};
pub use command::{ChangeError, DeliveryControl};
pub use dead_letters::{
    DeadAction, DeadError, DeadFilter, DeadLetter, DeadLetterService, DeadList, DeadOutcome, LastDead,
    damaged_dead_letters, each_dead_letter, read_dead_letters,
};
pub use delivery::Delivery;
pub use ledger::{
    Begin, Condition, GiveUpError, GivenUp, Ledger, LedgerLoadError, LedgerRow, Routes, SavedLedger, SinkName, SinkRow,
};
pub use options::{Clock, Options};
pub use setup::{Setup, SinkSetup};
pub use start_error::StartError;
pub use status::{CheckpointCounters, DeadCounters, LaneBoard, LaneState, LaneStatus};
