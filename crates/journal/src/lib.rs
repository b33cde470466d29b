//! The journal: the durable log on disk, a directory of segments for each shard. Synchronous; it knows bytes,
//! not JSON.
//!
//! The layers, each ignorant of the one above: [`disk`] → segment → block → record. [`Appender`] gives out
//! sequences, [`Committer`] makes blocks durable, [`Reader`] reads them back, [`open_shard`] recovers.

mod allowance;
mod appender;
mod block;
mod checksum;
mod committer;
mod damaged;
mod directory;
pub mod disk;
mod finding;
mod inspect;
mod layout;
mod reader;
mod record;
mod records;
mod recovery;
mod recovery_cases;
mod repair;
mod reserve;
mod scan;
mod segment;
mod segments;
#[cfg(any(test, feature = "simulated-disk"))]
pub mod simulated_disk;
mod spares;
mod state_file;
mod tail;
mod window;

pub use allowance::{Allowance, kept_free};
pub use appender::Appender;
pub use block::{Block, BlockHeader, Kind, OpenBlock, type_bit};
pub use committer::{CommitError, Committer, Seeds};
pub use directory::{DataDirectory, DirectoryError, make_directory, origin_of, shard_directory};
pub use finding::{
    Finding, LOG_BEGINS_LATE, LOG_ENDS_EARLY, SEGMENT_HEADER_COPY_DAMAGED, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED,
};
pub use inspect::{Inspected, inspect_shard};
pub use reader::{DamagedStretch, Reader, Stretch};
pub use record::{Dead, Given, Record, Settled};
pub use records::Records;
pub use recovery::{FoundShard, OpenError, OpenShard, ShardOptions, find_shard, open_shard};
pub use repair::{Repair, repair_shard};
pub use reserve::Reserve;
pub use segment::{FORMAT, SegmentHeader};
pub use segments::Segments;
pub use state_file::{State, StateFile, damaged_state_files};
