//! Delivery: moves events from the event log to the sinks, on a separate thread. Batching, retry and retention exist
//! once, here; a sink only writes. The crates [`ledger`], [`dead_letters`] and [`aggregation`] are below it.
//!
//! A *lane* (`lane/`) reads one shard for one sink, and writes one batch at a time. It counts the outcomes in the [`ledger::Ledger`]. The
//! *checkpointer* (`retention/`) saves the ledger with all cursors in one file, and frees the segments that no cursor needs. The *supervisor*
//! (`supervisor/`) runs all of them, and the aggregates and replays.

mod backoff;
mod command;
mod delivery;
mod lane;
mod lane_tasks;
mod log_cursor;
mod objects;
mod options;
mod progress_sampler;
mod retention;
mod setup;
mod start_error;
mod status;
mod status_source;
mod stored_times;
mod supervisor;
#[cfg(test)]
mod tests;
mod timer;

pub use command::{ChangeError, DeliveryControl};
pub use delivery::Delivery;
pub use options::Options;
pub use progress::{Failure, Passed, ProgressBoard, ProgressSample};
pub use setup::{Setup, SinkSetup};
pub use start_error::StartError;
pub use status::{CheckpointCounters, LaneBoard, LaneState, LaneStatus};
pub use stored_times::StoredTimes;
