//! The journal: the durable log on disk, a directory of segments for each shard. Synchronous; it knows bytes,
//! not JSON.
//!
//! The layers, each ignorant of the one above: [`disk`] → segment → block → record. [`Appender`] assigns
//! sequences, [`Committer`] makes blocks durable, [`Reader`] reads them back, [`open_shard`] recovers.

mod appender;
mod block;
mod checksum;
mod committer;
mod damaged;
mod directory;
pub mod disk;
mod disk_quota;
mod endian;
mod fields;
mod inspect;
mod open_error;
mod read_ahead;
mod reader;
mod record;
mod record_buffer;
mod recovery;
mod recovery_cases;
mod recovery_report;
mod repair;
mod reserve;
mod scan;
mod segment;
mod segment_pool;
mod segments;
mod shard_options;
#[cfg(any(test, feature = "simulated-disk"))]
pub mod simulated_disk;
mod state_file;
mod survey;
mod time_search;
mod torn_tail;
mod type_bits;

pub use appender::Appender;
pub use block::{Block, BlockHeader, BlockKind, OpenBlock};
pub use committer::{CommitError, Committer, Seeds};
pub use directory::{DataDirectory, DirectoryError, list_directory, make_directory, origin_of, shard_directory};
pub use disk_quota::{DiskQuota, kept_free};
pub use fields::{fields, push_field};
pub use inspect::{Inspected, inspect_shard};
pub use open_error::OpenError;
pub use reader::{DamagedChunk, LogChunk, Reader};
pub use record::{DedupKey, JournalRecord};
pub use record_buffer::RecordBuffer;
pub use recovery::{FoundShard, OpenShard, find_shard, open_shard};
pub use recovery_report::{
    Finding, LOG_BEGINS_LATE, LOG_ENDS_EARLY, SEGMENT_HEADER_COPY_DAMAGED, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED,
};
pub use repair::{Repair, repair_shard};
pub use reserve::Reserve;
pub use segment::{FORMAT, SegmentHeader};
pub use segments::Segments;
pub use shard_options::ShardOptions;
pub use state_file::{State, StateFile, damaged_state_files};
pub use type_bits::type_bit;
