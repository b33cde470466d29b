//! Reads of a store over the network, on a separate thread with a runtime, since the callers have no clock. The thread
//! has its own connections, so it never delays a lane. It begins with the first read.

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

/// Reads that may wait for the thread.
const WAITING_MAX: usize = 32;
/// A read that has waited this long is not begun any longer.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Idle connections are closed after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// The reader of the thread. It is created, used and dropped there.
pub trait PageReader {
    /// Reads a page.
    fn read(&mut self, query: &Query) -> impl Future<Output = Result<Page, ReadError>>;

    /// Closes what is open, after a time without reads.
    fn hang_up(&mut self) -> impl Future<Output = ()>;
}

/// A waiting read.
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
    /// Ends the current read; waiting ones are not begun.
    closes: watch::Sender<bool>,
    /// Ends with the thread.
    ended: oneshot::Receiver<()>,
}

impl ReadThread {
    /// A thread of this name, which is not running yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, running: Mutex::new(None) }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the thread read a page. `reader` creates the reader if the thread has to be started.
    pub async fn read<R: PageReader>(
        &self,
        reader: impl FnOnce() -> R + Send + 'static,
        query: Query,
    ) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(reader, Job { query, asked: Instant::now(), reply })?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Ends the current read and closes what is open. A later read begins again.
    pub async fn close(&self) {
        let running = self.running().take();
        if let Some(Running { jobs, closes, ended }) = running {
            closes.send_replace(true);
            drop(jobs);
            // Nothing is ever sent: it waits for the end of the thread.
            let _ = ended.await;
        }
    }

    /// Passes a job to the thread, and starts one if there is none.
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
            ReadError::Unavailable(
                format!("can't start a thread for reads ({error}): raise the limit of threads").into(),
            )
        };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let closing = closes.subscribe();
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            Work { reader: reader(), closes: closing }.run(&runtime, received);
        };
        std::thread::Builder::new().name(self.name.into()).spawn(run).map_err(failed)?;
        // The thread lives as long as its receiver, so a failure here is answered by the dropped reply.
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

    /// The next read. After a time without reads, it first closes what is open.
    async fn next(&mut self, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        if let Ok(job) = timeout(IDLE_MAX, jobs.recv()).await {
            return job;
        }
        self.reader.hang_up().await;
        jobs.recv().await
    }

    async fn serve(&mut self, job: Job) {
        // The caller has gone.
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
