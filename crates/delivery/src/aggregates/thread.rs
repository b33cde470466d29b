//! The thread of all folds: saving a state with a million groups takes some tenths of a second, and lanes shouldn't wait for it.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime, until it is dropped.
pub(super) struct FoldThread {
    pub(super) runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FoldThread {
    #[cfg_attr(test, expect(dead_code, reason = "tests keep everything on the runtime with their clock"))]
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let run = move || {
            // It ends when the sender does, whichever way.
            let _ = runtime.block_on(ended);
        };
        let thread = std::thread::Builder::new().name("aggregates".into()).spawn(run)?;
        Ok(Self { runtime: handle, end: Some(end), thread: Some(thread) })
    }

    #[cfg(test)]
    pub(super) fn here() -> Self {
        Self { runtime: Handle::current(), end: None, thread: None }
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
