//! Detects changes of a file by the file system's metadata.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often the files' metadata are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks every second until the future is dropped.
pub(crate) async fn follow(mut look: impl FnMut()) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        look();
    }
}

/// The identity and times of a file: each change makes another one. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// There is none.
    Absent,
    /// The file system's metadata.
    File { device: u64, inode: u64, bytes: u64, modified: (i64, i64), changed: (i64, i64) },
    /// The metadata can't be read; the reason.
    Hidden(io::ErrorKind),
}

impl Stamp {
    /// Reads the file's metadata.
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
