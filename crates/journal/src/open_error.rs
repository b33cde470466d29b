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
    #[error(
        "cannot open the journal in {directory}: {source}. Check the disk and its permissions, then start Forebay \
         again"
    )]
    Io {
        /// The shard's directory.
        directory: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// A segment was written by another version.
    #[error(
        "{path} has format {found}, but this version reads format {}: use the version that wrote it",
        segment::FORMAT
    )]
    Format {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A segment belongs to another data directory or shard.
    #[error("{path} belongs to gateway {found}, shard {shard}, not to this directory: move it away")]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// Its gateway id.
        found: Origin,
        /// Its shard.
        shard: u16,
    },
    /// The new segment couldn't be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}
