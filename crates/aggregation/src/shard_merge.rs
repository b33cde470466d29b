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
    at_hand: Option<LogChunk>,
    /// The last sequence that was returned.
    given: u64,
}

impl ShardReader {
    /// The number of the current chunk among those of all shards. A damaged chunk has lost its number and comes first.
    fn number(&self) -> Option<u64> {
        match self.at_hand.as_ref()? {
            LogChunk::Block(block) => Some(block.header().number),
            LogChunk::Damaged(_) => Some(0),
        }
    }

    fn give(&mut self) -> Option<Read> {
        let chunk = self.at_hand.take()?;
        let first = match &chunk {
            LogChunk::Block(block) => block.header().first,
            LogChunk::Damaged(damaged) => damaged.sequences().start,
        };
        let unreadable = chunk.finding().map_or(0, |finding| finding.lost_count());
        let missing = first.saturating_sub(self.given + 1);
        self.given = self.given.max(chunk.end() - 1);
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
    ways: Vec<ShardReader>,
}

impl EventReader {
    /// Begins after these sequences.
    pub(crate) fn new(shards: &[Arc<Shard>], after: &[u64]) -> Self {
        let way = |(shard, after): (&Arc<Shard>, &u64)| ShardReader {
            reader: shard.reader(*after),
            at_hand: None,
            given: *after,
        };
        Self { ways: shards.iter().zip(after).map(way).collect() }
    }

    /// The next chunk, with its shard; `None` if everything durable was read.
    ///
    /// # Errors
    /// The error of the file system. The next call tries again.
    pub(crate) fn next(&mut self) -> io::Result<Option<(usize, Read)>> {
        for way in &mut self.ways {
            if way.at_hand.is_none() {
                way.at_hand = way.reader.read()?;
            }
        }
        let first = self.ways.iter().enumerate().filter_map(|(shard, way)| Some((way.number()?, shard))).min();
        Ok(first.and_then(|(_, shard)| Some((shard, self.ways[shard].give()?))))
    }

    /// Waits until there is something to read.
    pub(crate) async fn ready(&self) {
        let mut ready: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::with_capacity(self.ways.len());
        for way in &self.ways {
            ready.push(Box::pin(way.reader.ready()));
        }
        poll_fn(|context| {
            let is_ready = ready.iter_mut().any(|ready| ready.as_mut().poll(context).is_ready());
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
