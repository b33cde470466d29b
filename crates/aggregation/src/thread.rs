//! The threads of folds: it takes seconds to add or to save a million groups, and neither lanes nor other folds should
//! wait for it.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle as Thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The threads, until they are dropped.
pub(crate) struct FoldThreads {
    /// Each fold has its own thread up to this number; then they share them.
    max: usize,
    threads: Vec<FoldThread>,
}

/// A fold's slot on a thread. It is free again when it is dropped.
pub(crate) struct FoldSlot {
    runtime: Handle,
    slots: Arc<()>,
}

impl FoldThreads {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, threads: Vec::new() }
    }

    /// A slot on the thread with the fewest folds; without threads, on the caller's runtime.
    ///
    /// # Errors
    /// The operating system has no room for a thread.
    pub(crate) fn place(&mut self) -> io::Result<FoldSlot> {
        if self.threads.len() < self.max && self.threads.iter().all(|thread| thread.folds() > 0) {
            self.threads.push(FoldThread::start()?);
        }
        let Some(thread) = self.threads.iter().min_by_key(|thread| thread.folds()) else {
            return Ok(FoldSlot { runtime: Handle::current(), slots: Arc::default() });
        };
        Ok(FoldSlot { runtime: thread.runtime.clone(), slots: thread.slots.clone() })
    }
}

impl FoldSlot {
    /// Runs the work there until it ends.
    pub(crate) fn spawn(self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let Self { runtime, slots } = self;
        runtime.spawn(async move {
            work.await;
            drop(slots);
        })
    }
}

/// A thread with a runtime, until it is dropped.
struct FoldThread {
    runtime: Handle,
    /// Held by each of its folds too.
    slots: Arc<()>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<Thread<()>>,
}

impl FoldThread {
    fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let run = move || {
            // It ends when the sender is dropped or sends.
            let _ = runtime.block_on(ended);
        };
        let thread = std::thread::Builder::new().name("aggregates".into()).spawn(run)?;
        Ok(Self { runtime: handle, slots: Arc::default(), end: Some(end), thread: Some(thread) })
    }

    fn folds(&self) -> usize {
        Arc::strong_count(&self.slots) - 1
    }
}

impl Drop for FoldThread {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_fold_has_a_thread_until_there_are_too_many() {
        let mut threads = FoldThreads::new(8);
        let places: Vec<FoldSlot> = (0..11).map(|_| threads.place().unwrap()).collect();
        let folds: Vec<usize> = threads.threads.iter().map(FoldThread::folds).collect();
        assert_eq!(folds, [2, 2, 2, 1, 1, 1, 1, 1]);
        drop(places);
        let again = threads.place().unwrap();
        again.spawn(async {}).await.unwrap();
        assert!(threads.threads.iter().all(|thread| thread.folds() == 0), "what ends gives its place back");
    }
}
