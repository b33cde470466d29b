//! A consumer's cursor in a shard's log. It reads from the tail cache while it keeps up, and from disk otherwise.

use std::io;
use std::sync::Arc;

use journal::{LogChunk, Reader};

use crate::committed_log::CommittedLog;

/// Reads one shard's log in order for one sink.
pub struct LogReader {
    log: Arc<CommittedLog>,
    slot: usize,
    next: u64,
    disk: Option<Reader>,
}

impl LogReader {
    pub(crate) fn new(log: Arc<CommittedLog>, after: u64) -> Self {
        let slot = log.tail_cache().join(after + 1);
        Self { log, slot, next: after + 1, disk: None }
    }

    /// The sequence that is read next.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The last sequence that can be read now.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.log.durable()
    }

    /// Waits until there is something to read.
    pub async fn ready(&self) {
        self.log.tail_cache().moved_beyond(self.next - 1).await;
    }

    /// The next chunk of the log, or `None` if everything durable was read. It may begin before the sequence that
    /// [`LogReader::next`] returned before the call: the caller skips the events that it has already read.
    ///
    /// # Errors
    /// The file system's error. The next call tries again.
    pub fn read(&mut self) -> io::Result<Option<LogChunk>> {
        let chunk = match self.log.tail_cache().take(self.slot, self.next) {
            Some(block) => {
                self.disk = None;
                Some(LogChunk::Block(block))
            }
            None => self.read_from_disk()?,
        };
        if let Some(chunk) = &chunk {
            self.next = self.next.max(chunk.end());
        }
        Ok(chunk)
    }

    fn read_from_disk(&mut self) -> io::Result<Option<LogChunk>> {
        let durable = self.durable();
        if self.next > durable {
            return Ok(None);
        }
        let (log, next) = (&self.log, self.next);
        let reader = self.disk.get_or_insert_with(|| Reader::new(log.segments().clone(), next));
        reader.read(durable)
    }
}

/// The tail cache keeps nothing for this reader from now on.
impl Drop for LogReader {
    fn drop(&mut self) {
        self.log.tail_cache().leave(self.slot);
    }
}
