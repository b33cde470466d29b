//! A commit group: the requests that share one block, and the result of its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use event::EventId;

use crate::accepted_counts::TypeCounts;
use crate::dedup::PackedPosition;

/// The state of a group's commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CommitStatus {
    /// The block is open, or being committed.
    Pending = 0,
    /// It is durable.
    Durable = 1,
    /// There was no space for it, and nothing was written.
    NoSpace = 2,
    /// The journal failed. The state of the disk is unknown.
    Failed = 3,
}

/// Shared by the requests of a group.
#[derive(Debug, Default)]
pub(crate) struct CommitStatusCell(AtomicU8);

impl CommitStatusCell {
    pub(crate) fn get(&self) -> CommitStatus {
        match self.0.load(Ordering::Acquire) {
            0 => CommitStatus::Pending,
            1 => CommitStatus::Durable,
            2 => CommitStatus::NoSpace,
            _ => CommitStatus::Failed,
        }
    }

    fn set(&self, status: CommitStatus) {
        self.0.store(status as u8, Ordering::Release);
    }
}

/// The requests of one block.
#[derive(Debug, Default)]
pub(crate) struct CommitGroup {
    status: Arc<CommitStatusCell>,
    waiting: Vec<Waker>,
    pub(crate) counts: TypeCounts,
    pub(crate) records: u64,
    /// The ids of clients in this group, and the positions that the dedup index has for them.
    pub(crate) indexed: Vec<(EventId, PackedPosition)>,
}

impl CommitGroup {
    /// The group after `before`: it will have about as many requests.
    pub(crate) fn after(before: &Self) -> Self {
        Self { waiting: Vec::with_capacity(before.waiting.len()), ..Self::default() }
    }

    pub(crate) fn status(&self) -> Arc<CommitStatusCell> {
        self.status.clone()
    }

    /// Whether `status` is this group's.
    pub(crate) fn has(&self, status: &Arc<CommitStatusCell>) -> bool {
        Arc::ptr_eq(&self.status, status)
    }

    pub(crate) fn wait(&mut self, waker: &Waker) {
        self.waiting.push(waker.clone());
    }

    /// Sets the result of the commit. Later polls see it and need no wake-up, so call it under the lock under which wakers are added.
    pub(crate) fn finish(&self, status: CommitStatus) {
        self.status.set(status);
    }

    /// Wakes the group's requests.
    pub(crate) fn wake(self) {
        debug_assert!(self.status.get() != CommitStatus::Pending, "a group is finished before its requests are woken");
        self.waiting.into_iter().for_each(Waker::wake);
    }
}
