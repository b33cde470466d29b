//! The event log: what a gateway appends to and a delivery reads from.
//!
//! A shard gathers the requests that are ready, commits them as one block at the end of its runtime's turn, and
//! then lets them all answer. Committed blocks are handed over to delivery in memory while it keeps up, and read
//! from disk where it doesn't.

mod accepted;
mod commit_pace;
mod commit_thread;
mod duplicates;
mod handover;
mod lane;
mod log;
mod losses;
mod outcomes;
mod request_extent;
mod returned;
mod room;
mod shard;
mod shard_counters;
mod taken;
mod turn;
mod type_registry;
mod unread_times;

pub use accepted::{Accepted, AcceptedCounts, FilterStep};
pub use clock::unix_microseconds;
pub use duplicates::{Batch, Cause, ContentHash, Earlier, Line, Own, damaged_id_files, forget_lost_ids};
pub use lane::LaneReader;
pub use log::{EventLog, LogOptions, OpenLogError};
pub use losses::{Loss, Losses, LostFrom};
pub use outcomes::{Asked, Outcomes, Pending, Refusals, Refused, Span, Wait, Witness};
pub use request_extent::RequestExtent;
pub use room::Room;
pub use shard::{Append, AppendError, Shard};
pub use shard_counters::ShardCounters;
pub use taken::Taken;
pub use type_registry::{Gate, TypeId, Types};
pub use unread_times::UnreadTimes;

pub use journal::disk::SharedDisk;
pub use journal::{
    Appender, Block, CommitError, Committer, DamagedStretch, DataDirectory, Dead, Finding, FoundShard, Given,
    Inspected, LOG_BEGINS_LATE, OpenError, OpenShard, Reader, Record, Records, Reserve, Segments, Settled,
    ShardOptions, State, StateFile, Stretch, find_shard, inspect_shard, make_directory,
};
