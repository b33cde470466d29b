//! Delivery: brings events from the event log to the sinks, on a thread of its own. Batching, retry, dead letters, cursors
//! and the ledger exist once, here; a sink only writes.
//!
//! A *lane* (`lane/`) reads one shard for one sink, and writes one batch at a time. It counts the outcomes in the [`Ledger`]. The
//! *checkpointer* (`retention/`) saves the ledger with all cursors in one file, and frees the segments that no cursor needs. The *supervisor*
//! (`supervisor/`) runs all of them, with the aggregates of the crate [`aggregation`] and the replays of the crate [`dead_letters`].

mod backoff;
mod command;
mod delivery;
mod lane;
mod lane_tasks;
mod log_cursor;
mod objects;
mod options;
mod retention;
mod setup;
mod start_error;
mod status;
mod status_source;
mod supervisor;
#[cfg(test)]
mod tests;
mod timer;

pub use aggregation::{
    AggregateBoard, AggregateFigures, AggregateSetup, AggregateStatus, UnusableState, unusable_states,
};
pub use command::{ChangeError, DeliveryControl};
pub use dead_letters::{
    DeadAction, DeadCounters, DeadError, DeadFilter, DeadLetter, DeadLetterService, DeadList, DeadOutcome, LastDead,
    damaged_dead_letters, each_dead_letter, read_dead_letters,
};
pub use delivery::Delivery;
pub use ledger::{
    Begin, Condition, GiveUpError, GivenUp, Ledger, LedgerLoadError, LedgerRow, Routes, SavedLedger, SinkName, SinkRow,
};
pub use options::Options;
pub use setup::{Setup, SinkSetup};
pub use start_error::StartError;
pub use status::{CheckpointCounters, LaneBoard, LaneState, LaneStatus};
