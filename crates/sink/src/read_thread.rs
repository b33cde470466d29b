//! Reads of a store that is asked over the network: done on a thread with a runtime separate, since those who ask have
//! no clock. What the thread opens is its own, so nothing that it does holds up a lane. It begins with the first read.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::read::{Page, Query, ReadError};
use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// Reads that wait for the thread.
const WAITING_MAX: usize = 32;
/// A read that has waited for so long isn't begun any longer.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// What nobody needs is closed.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// What the thread reads with. It is made, used and dropped there.
pub trait PageReader {
    /// Reads a page.
    fn read(&mut self, query: &Query) -> impl Future<Output = Result<Page, ReadError>>;

    /// Closes what is open: nobody has read for a while.
    fn hang_up(&mut self) -> impl Future<Output = ()>;
}

/// A read that waits.
struct Job {
    query: Query,
    asked: Instant,
    reply: oneshot::Sender<Result<Page, ReadError>>,
}

/// The handle on the thread.
pub struct ReadThread {
    name: &'static str,
    running: Mutex<Option<Running>>,
}

struct Running {
    jobs: mpsc::Sender<Job>,
    /// The read in hand is ended, and what waits isn't begun any longer.
    closes: watch::Sender<bool>,
    /// Comes to an end with the thread.
    ended: oneshot::Receiver<()>,
}

impl ReadThread {
    /// A thread of this name, which isn't running yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, running: Mutex::new(None) }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread read a page. `reader` makes what it reads with, where the thread must begin first.
    pub async fn read<R: PageReader>(
        &self,
        reader: impl FnOnce() -> R + Send + 'static,
        query: Query,
    ) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(reader, Job { query, asked: Instant::now(), reply })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Ends the read in hand and closes what is open. A later read begins again.
    pub async fn close(&self) {
        let running = self.running().take();
        if let Some(Running { jobs, closes, ended }) = running {
            closes.send_replace(true);
            drop(jobs);
            // Nothing is ever sent: the thread's end is what is waited for.
            let _ = ended.await;
        }
    }

    /// Hands a job to the thread, and starts one where there is none.
    fn send<R: PageReader>(&self, reader: impl FnOnce() -> R + Send + 'static, job: Job) -> Result<(), ReadError> {
        let mut running = self.running();
        let job = match running.as_ref().map(|running| &running.jobs) {
            None => job,
            Some(jobs) => match jobs.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => return Err(ReadError::Busy),
                Err(TrySendError::Closed(job)) => job,
            },
        };
        let (jobs, received) = mpsc::channel(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let closes = watch::Sender::new(false);
        let failed = |error: io::Error| {
            ReadError::Unavailable(format!("no thread to read with ({error}): raise the limit on threads").into())
        };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let closing = closes.subscribe();
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            Work { reader: reader(), closes: closing }.run(&runtime, received);
        };
        std::thread::Builder::new().name(self.name.into()).spawn(run).map_err(failed)?;
        // The thread lives as long as its receiver does, so a failure here is answered by the dropped reply.
        let _ = jobs.try_send(job);
        *running = Some(Running { jobs, closes, ended });
        Ok(())
    }
}

fn closed() -> ReadError {
    ReadError::Unavailable("the sink was closed here".into())
}

/// The thread's own state.
struct Work<R> {
    reader: R,
    closes: watch::Receiver<bool>,
}

impl<R: PageReader> Work<R> {
    fn run(mut self, runtime: &Runtime, mut jobs: mpsc::Receiver<Job>) {
        runtime.block_on(async {
            while let Some(job) = self.next(&mut jobs).await {
                self.serve(job).await;
            }
            self.reader.hang_up().await;
        });
    }

    /// The next read. Where none comes for a while, what is open is closed first.
    async fn next(&mut self, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        if let Ok(job) = timeout(IDLE_MAX, jobs.recv()).await {
            return job;
        }
        self.reader.hang_up().await;
        jobs.recv().await
    }

    async fn serve(&mut self, job: Job) {
        // Nobody waits for it any longer.
        if job.reply.is_closed() {
            return;
        }
        let mut closes = self.closes.clone();
        if job.asked.elapsed() > WAIT_MAX || *closes.borrow() {
            drop(job.reply.send(Err(ReadError::Busy)));
            return;
        }
        let read = pin!(self.reader.read(&job.query));
        let answer = match select(read, pin!(closes.wait_for(|closes| *closes))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(closed()),
        };
        drop(job.reply.send(answer));
    }
}
