//! The thread that commits where an fdatasync takes too long to wait for inline.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use journal::{Committer, OpenBlock};

use crate::shard::Shard;

/// A commit with all that it needs: the committer travels with the block.
pub(crate) struct Job {
    pub(crate) committer: Committer,
    pub(crate) block: OpenBlock,
}

/// A handle on the thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct CommitThread(Sender<Job>);

impl CommitThread {
    pub(crate) fn start(shard: &Arc<Shard>) -> io::Result<Self> {
        let (sender, jobs) = channel::<Job>();
        let name = format!("commit-{}", shard.number());
        let shard = Arc::downgrade(shard);
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || {
            while let Ok(job) = jobs.recv() {
                let Some(shard) = shard.upgrade() else { break };
                shard.commit_away(job);
            }
        })?;
        Ok(Self(sender))
    }

    /// The thread lives as long as this handle, so the job arrives.
    pub(crate) fn send(&self, job: Job) {
        let sent = self.0.send(job);
        debug_assert!(sent.is_ok(), "the commit thread outlives its handles");
    }
}
