//! The thread that reads a store of objects: callers have no timers of their runtime for it, and it isn't delivery's.
//! It begins with the first read, and ends with the value.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Files that are read at a time: each takes a thread.
const BLOCKING_THREADS: usize = 4;

/// The handle on the thread.
#[derive(Default)]
pub(super) struct ReadingThread(Mutex<Option<Running>>);

struct Running {
    runtime: Handle,
    /// The thread ends when this is dropped.
    _end: oneshot::Sender<()>,
}

impl ReadingThread {
    /// Runs `work` on the thread.
    ///
    /// # Errors
    /// The operating system can't start the thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(start()?),
        };
        running.runtime.spawn(work);
        Ok(())
    }
}

fn start() -> io::Result<Running> {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let handle = runtime.handle().clone();
    let (end, ended) = oneshot::channel::<()>();
    let run = move || {
        // Nothing is ever sent.
        let _ = runtime.block_on(ended);
        // A file operation that hangs isn't waited for.
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("objects".into()).spawn(run)?;
    Ok(Running { runtime: handle, _end: end })
}
