//! Reads of a store: a thread with a runtime, since the callers have no clock, and readers on it. Each reader has its
//! own connection, so it never delays a lane. It is created when a read waits, and closed after a time without reads.
//! The thread begins with the first read.

mod joint_lookup;
mod queue;
mod worker;

use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use event::read::{Found, Lookup, Page, Query, ReadError};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::Instant;

use queue::{Job, SharedQueue};
use worker::Worker;

/// A reader. It is created, used and dropped on the thread of its pool, one call at a time.
///
/// A call must not block the thread. If it takes too long, the reader is dropped in the middle of it.
#[async_trait(?Send)]
pub trait PooledReader {
    /// Reads a page.
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError>;

    /// Looks up events by their ids: see [`Sink::get`](crate::Sink::get).
    async fn get(&mut self, lookup: &Lookup) -> Result<Found, ReadError> {
        let Lookup { mut ids, bytes_max, only_type } = lookup.clone();
        let (mut found, mut bytes) = (Found::default(), 0);
        while let Some(id) = ids.pop() {
            let page = self.read(&Query::of_event(id, bytes_max, only_type.clone())).await?;
            let Some(event) = page.events.into_iter().next() else { continue };
            bytes += event.bytes();
            if bytes > bytes_max && !found.events.is_empty() {
                ids.push(id);
                break;
            }
            found.events.push(event);
        }
        Ok(Found { left: ids, ..found })
    }

    /// Closes what is open. It is the reader's last call.
    async fn hang_up(&mut self);
}

type MakeReader = Arc<dyn Fn() -> Box<dyn PooledReader> + Send + Sync>;

/// The handle of the readers of one store or database.
///
/// - Lookups that wait are put together into one call, and equal pages that wait are read once. Nothing joins a call
///   that has begun: a caller finds what was stored before it asked.
/// - Reads are rejected early with [`ReadError::Busy`] if longer queues would only add delay.
pub struct ReadPool {
    name: &'static str,
    readers_max: NonZeroUsize,
    make: MakeReader,
    running: Mutex<Option<Running>>,
}

struct Running {
    queue: SharedQueue,
    /// Ends with the thread.
    ended: oneshot::Receiver<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl ReadPool {
    /// A pool whose thread has this name and isn't running yet. `make` makes a reader that isn't connected yet; there
    /// are at most `readers_max` at a time.
    pub fn new<R: PooledReader + 'static>(
        name: &'static str,
        readers_max: NonZeroUsize,
        make: impl Fn() -> R + Send + Sync + 'static,
    ) -> Self {
        Self { name, readers_max, make: Arc::new(move || Box::new(make())), running: Mutex::new(None) }
    }

    /// Reads a page.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if too many reads wait, or what the reader returns.
    pub async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::page(query, reply))?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Looks up events by their ids.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if too many reads wait, or what the reader returns.
    pub async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::lookup(lookup, reply))?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Ends the current and the waiting reads with an error, and closes what is open. A later read begins again.
    pub async fn close(&self) {
        let running = self.running().take();
        if let Some(mut running) = running {
            running.queue.close();
            // Nothing is ever sent: it waits for the end of the thread.
            let _ = (&mut running.ended).await;
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a job to the thread, and starts one if there is none.
    fn send(&self, job: Job) -> Result<(), ReadError> {
        let mut running = self.running();
        let job = match &*running {
            Some(running) => match running.queue.push(job, Instant::now())? {
                None => return Ok(()),
                // The thread has ended.
                Some(job) => job,
            },
            None => job,
        };
        let started = self.start()?;
        let pushed = started.queue.push(job, Instant::now()).map(drop);
        *running = Some(started);
        pushed
    }

    fn start(&self) -> Result<Running, ReadError> {
        let failed = |error: io::Error| {
            ReadError::Unavailable(
                format!("can't start a thread for reads ({error}): raise the limit of threads").into(),
            )
        };
        // Blocking calls that hang don't add threads without end.
        let blocking = self.readers_max.get();
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().max_blocking_threads(blocking).build().map_err(failed)?;
        let queue = SharedQueue::default();
        let (end, ended) = oneshot::channel();
        let (to_serve, make, readers_max) = (queue.clone(), self.make.clone(), self.readers_max.get());
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            runtime.block_on(Worker::new(to_serve, make, readers_max).run());
        };
        std::thread::Builder::new().name(self.name.into()).spawn(run).map_err(failed)?;
        Ok(Running { queue, ended })
    }
}

fn closed() -> ReadError {
    ReadError::Unavailable("the sink was closed here".into())
}

#[cfg(test)]
mod tests;
