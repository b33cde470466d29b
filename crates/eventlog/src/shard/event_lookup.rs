//! Finds single events of a shard's log.

use std::ops::RangeInclusive;
use std::time::Duration;

use event::EventId;

use super::Shard;
use crate::logged_event::LoggedEvent;

impl Shard {
    /// The event at a sequence. `None` if the log no longer has it, or if there is none. Reads the disk: call it from a
    /// thread that may block.
    ///
    /// # Errors
    /// The file system's error.
    pub fn event_at(&self, sequence: u64) -> std::io::Result<Option<LoggedEvent>> {
        LoggedEvent::find(&self.committed, sequence..=sequence, Duration::MAX, |_, _| true)
    }

    /// The first event with an id among these sequences. `None` if the log has none there, or none within `longest`.
    /// Reads the disk: call it from a thread that may block.
    ///
    /// # Errors
    /// The file system's error.
    pub fn event_with_id(
        &self,
        id: EventId,
        sequences: RangeInclusive<u64>,
        longest: Duration,
    ) -> std::io::Result<Option<LoggedEvent>> {
        LoggedEvent::find(&self.committed, sequences, longest, |_, record| record.id == id)
    }
}
