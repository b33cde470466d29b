//! The tail cache: recent blocks, kept in memory for the readers that keep up. Blocks beyond its limit are dropped and
//! read from disk, so memory doesn't grow with a backlog.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journal::Block;
use tokio::sync::Notify;

/// A shard's recent blocks, and the notification of its readers.
#[derive(Debug)]
pub(crate) struct TailCache {
    recent: Mutex<Recent>,
    durable: AtomicU64,
    moved: Notify,
}

#[derive(Debug)]
struct Recent {
    /// The greatest total size of the blocks.
    bytes_max: usize,
    blocks: VecDeque<Block>,
    bytes: usize,
    /// For each lane the sequence that it wants next.
    lanes: Vec<u64>,
}

impl TailCache {
    pub(crate) fn new(durable: u64, bytes_max: usize) -> Self {
        let recent = Recent { bytes_max, blocks: VecDeque::new(), bytes: 0, lanes: Vec::new() };
        Self { recent: Mutex::new(recent), durable: AtomicU64::new(durable), moved: Notify::new() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last durable sequence.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Passes on a block that is durable now.
    pub(crate) fn publish(&self, block: Block) {
        let mut recent = self.recent();
        // Only then may the block be visible: a lane must never be ahead of the durable sequence.
        self.durable.store(block.header().end() - 1, Ordering::Release);
        recent.keep(block);
        drop(recent);
        self.moved.notify_waiters();
    }

    /// Waits until the last durable sequence is greater than `sequence`.
    pub(crate) async fn moved_beyond(&self, sequence: u64) {
        self.until(|| (self.durable() > sequence).then_some(())).await;
    }

    /// Waits until `ask` returns a value: it is called again after each change here.
    pub(crate) async fn until<T>(&self, mut ask: impl FnMut() -> Option<T>) -> T {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if let Some(answer) = ask() {
                return answer;
            }
            moved.await;
        }
    }

    /// Wakes those that wait for an event that won't come, to ask again.
    pub(crate) fn notify_without_block(&self) {
        self.moved.notify_waiters();
    }

    /// Registers a lane that reads from `next` on, and returns its number. The numbers of lanes that have left are given
    /// again: lanes come and go with each new configuration.
    pub(crate) fn join(&self, next: u64) -> usize {
        let mut recent = self.recent();
        if let Some(free) = recent.lanes.iter().position(|next| *next == u64::MAX) {
            recent.lanes[free] = next;
            return free;
        }
        recent.lanes.push(next);
        recent.lanes.len() - 1
    }

    /// Keeps nothing for this lane from now on.
    pub(crate) fn leave(&self, lane: usize) {
        let mut recent = self.recent();
        recent.lanes[lane] = u64::MAX;
        recent.drop_passed();
    }

    /// The block that holds `next`, if it is still in memory. Blocks that every lane has passed are dropped.
    pub(crate) fn take(&self, lane: usize, next: u64) -> Option<Block> {
        let mut recent = self.recent();
        recent.lanes[lane] = next;
        recent.drop_passed();
        let at = recent.blocks.partition_point(|block| block.header().end() <= next);
        recent.blocks.get(at).filter(|block| block.header().first <= next).cloned()
    }

    /// Bytes held in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.recent().bytes
    }
}

impl Recent {
    fn keep(&mut self, block: Block) {
        if self.lanes.iter().all(|next| *next == u64::MAX) {
            return;
        }
        self.bytes += block.bytes().len();
        self.blocks.push_back(block);
        while self.bytes > self.bytes_max {
            self.drop_oldest();
        }
    }

    fn drop_passed(&mut self) {
        let slowest = self.lanes.iter().copied().min().unwrap_or(u64::MAX);
        while self.blocks.front().is_some_and(|block| block.header().end() <= slowest) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.bytes -= block.bytes().len();
        }
    }
}
