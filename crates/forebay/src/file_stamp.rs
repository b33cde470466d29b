//! Whether a file has changed, by what the file system says of it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What changes with a file: each change makes another one. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// There is none.
    Absent,
    /// What the file system says of it.
    File { device: u64, inode: u64, bytes: u64, modified: (i64, i64), changed: (i64, i64) },
    /// It can't be looked at, and why.
    Hidden(io::ErrorKind),
}

impl Stamp {
    /// Looks at the file.
    pub(crate) fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(metadata) => Self::of_file(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Err(error) => Self::Hidden(error.kind()),
        }
    }

    fn of_file(metadata: &Metadata) -> Self {
        Self::File {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
