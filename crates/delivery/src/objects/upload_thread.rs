//! The thread that sends objects, beside the one that reads the journal for all lanes: while that reads, checks and commits, stores
//! are given what is ready. On one thread they had nothing to do for a third of the time.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The thread, which begins with what is sent first and ends with the last clone of this. Cheap to clone: the clones share it.
#[derive(Clone, Default)]
pub(crate) struct UploadThread(Arc<OnceLock<Option<Thread>>>);

struct Thread {
    runtime: Handle,
    /// Never used but to be dropped.
    _end: oneshot::Sender<Infallible>,
}

impl UploadThread {
    /// Works on it. On a machine that has no thread to give, whoever calls does it beside what else it does.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        match self.0.get_or_init(|| Thread::start().ok()) {
            Some(thread) => thread.runtime.spawn(work),
            None => tokio::spawn(work),
        }
    }
}

impl Thread {
    fn start() -> io::Result<Self> {
        let (told, runtime) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel();
        // The runtime is made there: where there is no thread to be had, none may be dropped amid another's work.
        let run = move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            if told.send(runtime.handle().clone()).is_ok() {
                // It ends by the sender's end.
                let _: Result<Infallible, _> = runtime.block_on(ended);
            }
            // What is made for a store that hangs must not keep the process from ending.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("objects".into()).spawn(run)?;
        let runtime = runtime.recv().map_err(io::Error::other)?;
        Ok(Self { runtime, _end: end })
    }
}
