//! Reads the journals of all shards for one fold: one block at a time, in the order of their commits.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use eventlog::{LogChunk, LogReader, Shard};

/// The reader of one shard.
struct ShardReader {
    reader: LogReader,
    current: Option<LogChunk>,
    /// The last sequence that was returned.
    returned: u64,
}

impl ShardReader {
    /// The number of the current chunk among those of all shards. A damaged chunk has lost its number and comes first.
    fn number(&self) -> Option<u64> {
        match self.current.as_ref()? {
            LogChunk::Block(block) => Some(block.header().number),
            LogChunk::Damaged(_) => Some(0),
        }
    }

    fn take_chunk(&mut self) -> Option<Read> {
        let chunk = self.current.take()?;
        let first = match &chunk {
            LogChunk::Block(block) => block.header().first,
            LogChunk::Damaged(damaged) => damaged.sequences().start,
        };
        let unreadable = chunk.finding().map_or(0, |finding| finding.lost_count());
        let missing = first.saturating_sub(self.returned + 1);
        self.returned = self.returned.max(chunk.end() - 1);
        Some(Read { chunk, lost: unreadable + missing })
    }
}

/// A chunk that was read.
pub(crate) struct Read {
    pub(crate) chunk: LogChunk,
    /// Positions in it and before it that could not be read.
    pub(crate) lost: u64,
}

/// The readers of all shards.
pub(crate) struct EventReader {
    readers: Vec<ShardReader>,
}

impl EventReader {
    /// Begins after these sequences.
    pub(crate) fn new(shards: &[Arc<Shard>], after: &[u64]) -> Self {
        let shard_reader = |(shard, after): (&Arc<Shard>, &u64)| ShardReader {
            reader: shard.reader(*after),
            current: None,
            returned: *after,
        };
        Self { readers: shards.iter().zip(after).map(shard_reader).collect() }
    }

    /// The next chunk, with its shard; `None` if everything durable was read.
    ///
    /// # Errors
    /// The error of the file system. The next call tries again.
    pub(crate) fn next(&mut self) -> io::Result<Option<(usize, Read)>> {
        for shard_reader in &mut self.readers {
            if shard_reader.current.is_none() {
                shard_reader.current = shard_reader.reader.read()?;
            }
        }
        let first = self
            .readers
            .iter()
            .enumerate()
            .filter_map(|(shard, shard_reader)| Some((shard_reader.number()?, shard)))
            .min();
        Ok(first.and_then(|(_, shard)| Some((shard, self.readers[shard].take_chunk()?))))
    }

    /// Waits until there is something to read.
    pub(crate) async fn ready(&self) {
        let mut ready: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::with_capacity(self.readers.len());
        for shard_reader in &self.readers {
            ready.push(Box::pin(shard_reader.reader.ready()));
        }
        poll_fn(|context| {
            let is_ready = ready.iter_mut().any(|ready| ready.as_mut().poll(context).is_ready());
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
