//! The thread that commits if an fdatasync takes too long to wait for inline.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use journal::{Committer, OpenBlock};

/// A commit with all that it needs: the committer travels with the block.
pub(crate) struct Job {
    pub(crate) committer: Committer,
    pub(crate) block: OpenBlock,
}

/// A handle on the thread, which ends when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct CommitThread(Sender<Job>);

impl CommitThread {
    /// Starts the thread of a shard. It ends if `commit` returns `false`.
    pub(crate) fn start(shard: u16, commit: impl Fn(Job) -> bool + Send + 'static) -> io::Result<Self> {
        let (sender, jobs) = channel::<Job>();
        let name = format!("commit-{shard}");
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || {
            while let Ok(job) = jobs.recv()
                && commit(job)
            {}
        })?;
        Ok(Self(sender))
    }

    /// The thread lives as long as this handle, so the job arrives.
    pub(crate) fn send(&self, job: Job) {
        let sent = self.0.send(job);
        debug_assert!(sent.is_ok(), "the commit thread outlives its handles");
    }
}
