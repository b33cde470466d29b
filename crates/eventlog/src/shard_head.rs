//! The head of a shard's log: the open block, and the group that waits for its commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;

use journal::{Appender, Committer, OpenBlock};

use crate::commit_group::{CommitGroup, CommitStatus, CommitStatusCell};
use crate::commit_pace::CommitPace;
use crate::commit_thread::{CommitThread, Job};

/// Under a shard's lock.
pub(crate) struct Head {
    pub(crate) appender: Appender,
    /// `None` while the commit thread has it, and after the shard was closed.
    pub(crate) committer: Option<Committer>,
    pub(crate) open: CommitGroup,
    /// The group that the commit thread commits.
    pub(crate) offloaded: Option<CommitGroup>,
    pub(crate) thread: Option<CommitThread>,
    pub(crate) pace: CommitPace,
    pub(crate) failed: bool,
}

impl Head {
    pub(crate) fn new(appender: Appender, committer: Committer) -> Self {
        Self {
            appender,
            committer: Some(committer),
            open: CommitGroup::default(),
            offloaded: None,
            thread: None,
            pace: CommitPace::default(),
            failed: false,
        }
    }

    pub(crate) fn take_open(&mut self) -> (OpenBlock, CommitGroup) {
        let next = CommitGroup::after(&self.open);
        (self.appender.take(), std::mem::replace(&mut self.open, next))
    }

    pub(crate) fn take_job(&mut self) -> Option<Job> {
        let committer = self.committer.take()?;
        let (block, group) = self.take_open();
        self.offloaded = Some(group);
        Some(Job { committer, block })
    }

    /// A block that begins at `first` couldn't be written. Its sequences, and those of events appended after it, are
    /// used again. The requests of the latter fail too.
    pub(crate) fn rewind(&mut self, first: u64) {
        self.appender.rewind(first);
        let behind = std::mem::take(&mut self.open);
        behind.finish(CommitStatus::NoSpace);
        behind.wake();
    }
}

pub(crate) fn lock(head: &Mutex<Head>) -> MutexGuard<'_, Head> {
    head.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The status of a group. While it is pending, the task is woken when the commit ends.
pub(crate) fn poll_status(head: &Mutex<Head>, status: &Arc<CommitStatusCell>, context: &Context<'_>) -> CommitStatus {
    let mut head = lock(head);
    let now = status.get();
    if now == CommitStatus::Pending {
        let group = if head.open.has(status) { Some(&mut head.open) } else { head.offloaded.as_mut() };
        if let Some(group) = group {
            group.wait(context.waker());
        }
    }
    now
}
