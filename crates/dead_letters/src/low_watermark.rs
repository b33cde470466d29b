//! Where a journal of dead letters begins: the first position that must be there. Without it a loss of the first
//! segments would go unnoticed.

use std::io;
use std::path::Path;

use eventlog::{Finding, SharedDisk, StateFile};

const FILE: &str = "front";

/// The state file, in the journal's own directory.
pub(super) struct LowWatermark {
    file: StateFile,
    /// `None` for a journal of an older version, or if both copies are damaged.
    first: Option<u64>,
}

impl LowWatermark {
    /// Reads it. If one copy is damaged, the other may be older than what was freed: then neither counts.
    pub(super) fn open(disk: SharedDisk, directory: &Path) -> io::Result<Self> {
        let (file, state) = StateFile::open(disk, directory, FILE)?;
        let content = state.content.filter(|_| state.damaged.is_empty());
        let first = content.and_then(|content| std::str::from_utf8(&content).ok()?.parse().ok());
        Ok(Self { file, first })
    }

    /// What is missing from a journal that begins with `oldest`.
    pub(super) fn missing(&self, oldest: u64) -> Option<Finding> {
        self.first.filter(|first| *first < oldest).map(|first| Finding::begins_late(first, oldest))
    }

    /// Notes that everything before `first` may be gone. It is durable when this returns, so call it before anything is removed.
    pub(super) fn note(&mut self, first: u64) -> io::Result<()> {
        if self.first != Some(first) {
            self.file.write(first.to_string().as_bytes())?;
            self.first = Some(first);
        }
        Ok(())
    }
}
