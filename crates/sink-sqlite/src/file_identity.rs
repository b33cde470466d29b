//! The identity of the file that a connection has open: the path may be of another file by now.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity of a path's file, regardless of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}
