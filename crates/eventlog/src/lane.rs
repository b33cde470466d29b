//! One lane's way through a shard's log: from memory where it keeps up, from disk where it doesn't.

use std::io;
use std::sync::Arc;

use journal::{Reader, Stretch};

use crate::shard::Shard;

/// Reads one shard's log in order for one sink.
pub struct LaneReader {
    shard: Arc<Shard>,
    slot: usize,
    next: u64,
    disk: Option<Reader>,
}

impl LaneReader {
    pub(crate) fn new(shard: Arc<Shard>, after: u64) -> Self {
        let slot = shard.handover().join(after + 1);
        Self { shard, slot, next: after + 1, disk: None }
    }

    /// The sequence that is wanted next.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The last sequence that can be read now.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.shard.durable()
    }

    /// Waits until there is something to read.
    pub async fn ready(&self) {
        self.shard.handover().moved_beyond(self.next - 1).await;
    }

    /// The next stretch of the log, or `None` where everything durable was read. It may begin before
    /// [`LaneReader::next`] as it was before the call: the caller passes over what it knows.
    ///
    /// # Errors
    /// What the file system says. The next call tries again.
    pub fn read(&mut self) -> io::Result<Option<Stretch>> {
        let stretch = match self.shard.handover().take(self.slot, self.next) {
            Some(block) => {
                self.disk = None;
                Some(Stretch::Block(block))
            }
            None => self.read_from_disk()?,
        };
        if let Some(stretch) = &stretch {
            self.next = self.next.max(stretch.end());
        }
        Ok(stretch)
    }

    fn read_from_disk(&mut self) -> io::Result<Option<Stretch>> {
        let durable = self.durable();
        if self.next > durable {
            return Ok(None);
        }
        let (shard, next) = (&self.shard, self.next);
        let reader = self.disk.get_or_insert_with(|| Reader::new(shard.segments().clone(), next));
        reader.read(durable)
    }
}

/// What was kept in memory for this lane isn't any more.
impl Drop for LaneReader {
    fn drop(&mut self) {
        self.shard.handover().leave(self.slot);
    }
}
