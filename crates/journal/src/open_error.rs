//! Why a journal can't be opened.

use std::io;
use std::path::PathBuf;

use event::Origin;

use crate::committer::CommitError;
use crate::segment;

/// Why a journal can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system failed.
    #[error("can't open the journal in {directory}: {source}")]
    Io {
        /// The shard's directory.
        directory: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A segment was written by another version.
    #[error("{path} has format {found}, this version reads format {}; use the version that wrote it", segment::FORMAT)]
    Format {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A segment of another data directory or shard lies among ours.
    #[error("{path} belongs to origin {found}, shard {shard}, not to this directory; move it away")]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// Whose it is.
        found: Origin,
        /// The shard it names.
        shard: u16,
    },
    /// The new segment couldn't be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}
