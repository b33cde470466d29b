//! The event log: gateways append to it, and delivery reads from it.
//!
//! A shard collects the requests that are ready, commits them as one block at the end of its runtime's tick (group commit), and then
//! lets all of them respond. Delivery reads committed blocks from the tail cache while it keeps up, and from disk otherwise.

mod accepted_counts;
mod append_error;
mod append_outcome;
mod commit_group;
mod commit_pace;
mod commit_thread;
mod committed_log;
mod completion_queue;
mod dedup;
mod delivery_watch;
mod disk_watermark;
mod journal_failure;
mod log;
mod log_reader;
mod losses;
mod request_range;
mod saved_facts;
mod shard;
mod shard_counters;
mod shard_head;
mod tail_cache;
mod type_registry;
mod unread_times;
mod version1;

pub use accepted_counts::{Accepted, AcceptedCounts, FilterStep};
pub use append_error::AppendError;
pub use append_outcome::{Append, AppendOutcome};
pub use clock::unix_microseconds;
pub use dedup::{
    AppendBatch, AppendOptions, ContentHash, DedupResult, LineRejection, Original, SourceLine, damaged_id_files,
    forget_lost_ids,
};
pub use delivery_watch::{
    DeadLetterReason, DeliveryStatusSource, DeliveryWait, DeliveryWatch, PendingLane, RejectedEvent, Rejections,
    SequenceRange, WatchRequest,
};
pub use disk_watermark::DiskGuard;
pub use log::{EventLog, LogOptions, OpenLogError};
pub use log_reader::LogReader;
pub use losses::{Loss, Losses, LostFrom};
pub use request_range::RequestRange;
pub use saved_facts::{FactFormat, InvalidFact, decode_facts, encode_facts};
pub use shard::Shard;
pub use shard_counters::ShardCounters;
pub use type_registry::{Gate, TypeId, Types};
pub use unread_times::UnreadTimes;

pub use journal::disk::SharedDisk;
pub use journal::{
    Appender, Block, CommitError, Committer, DamagedChunk, DataDirectory, DedupKey, Finding, FoundShard, Inspected,
    JournalRecord, LOG_BEGINS_LATE, LogChunk, OpenError, OpenShard, Reader, RecordBuffer, Reserve, Segments,
    ShardOptions, State, StateFile, fields, find_shard, inspect_shard, list_directory, make_directory, push_field,
};
