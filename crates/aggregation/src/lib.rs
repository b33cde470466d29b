//! Aggregates: each is a fold that reads the journals of all shards, like a lane. It journals its results as events of
//! a separate type, which the routes of that type deliver.
//!
//! Three rules make the results the same as without a crash:
//!
//! * A *checkpoint* (`checkpoint.rs`) is the fold's state with its position in each shard. Segments are kept from the older of
//!   its two generations (`retention.rs`).
//! * Results are emitted only from a state that is in the checkpoint, and are durable before the next checkpoint. So a restart
//!   emits the same results in the same order, and skips those that are in the journal already (`replay_filter.rs`).
//! * The time at which an idle window ends is in the journal, as a *tick* (`watermark_tick.rs`).

mod checkpoint;
mod halt;
mod late_events;
mod manager;
mod options;
mod replay_filter;
mod retention;
mod setup;
mod shard_merge;
mod status;
mod thread;
mod unusable;
mod watermark_tick;
mod worker;

pub use halt::Halt;
pub use manager::AggregateManager;
pub use options::{AggregationOptions, Clock};
pub use retention::AggregateRetention;
pub use setup::AggregateSetup;
pub use status::{AggregateBoard, AggregateFigures, AggregateStatus};
pub use unusable::{UnusableState, unusable_states};
