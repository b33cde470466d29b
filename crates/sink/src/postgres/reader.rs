//! Reads: a thread with a runtime and a connection of its own, since those who ask have no clock. The connection can't write,
//! and nothing that it does holds up a lane. The thread begins with the first read.

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use event::read::{Page, Query, ReadError};
use futures_util::future::{Either, select};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::config::PostgresConfig;
use super::failure::Failure;
use super::page;
use super::session::Session;

/// Reads that wait for the thread.
const WAITING_MAX: usize = 32;
/// A read that has waited for so long isn't begun any more.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// A connection that nobody needs is closed.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A read that waits.
struct Job {
    query: Query,
    asked: Instant,
    reply: oneshot::Sender<Result<Page, ReadError>>,
}

/// The handle on the thread.
#[derive(Default)]
pub(super) struct Reader {
    running: Mutex<Option<Running>>,
}

struct Running {
    jobs: mpsc::Sender<Job>,
    /// The read in hand is ended, and what waits isn't begun any more.
    closes: watch::Sender<bool>,
    /// Comes to an end with the thread.
    ended: oneshot::Receiver<()>,
}

impl Reader {
    pub(super) async fn read(&self, config: &PostgresConfig, query: Query) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(config, Job { query, asked: Instant::now(), reply })?;
        answer.await.unwrap_or_else(|_| Err(Failure::Closed.into_read_error(config)))
    }

    /// Ends the read in hand and closes the connection. A later read opens another.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { jobs, closes, ended }) = running {
            closes.send_replace(true);
            drop(jobs);
            // Nothing is ever sent: the thread's end is what is waited for.
            let _ = ended.await;
        }
    }

    /// Hands a job to the thread, and starts one where there is none.
    fn send(&self, config: &PostgresConfig, job: Job) -> Result<(), ReadError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
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
        let failed = |error: io::Error| Failure::NoThread(error).into_read_error(config);
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let work = Work { config: config.clone(), closes: closes.subscribe(), open: None };
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            work.run(&runtime, received);
        };
        std::thread::Builder::new().name("postgres-read".into()).spawn(run).map_err(failed)?;
        // The thread lives as long as its receiver does, so a failure here is answered by the dropped reply.
        let _ = jobs.try_send(job);
        *running = Some(Running { jobs, closes, ended });
        Ok(())
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// The thread's own state.
struct Work {
    config: PostgresConfig,
    closes: watch::Receiver<bool>,
    open: Option<Session>,
}

impl Work {
    fn run(mut self, runtime: &Runtime, mut jobs: mpsc::Receiver<Job>) {
        runtime.block_on(async {
            while let Some(job) = self.next(&mut jobs).await {
                self.serve(job).await;
            }
            self.hang_up().await;
        });
    }

    /// The next read. Where none comes for a while, the connection is given back first.
    async fn next(&mut self, jobs: &mut mpsc::Receiver<Job>) -> Option<Job> {
        if let Ok(job) = timeout(IDLE_MAX, jobs.recv()).await {
            return job;
        }
        self.hang_up().await;
        jobs.recv().await
    }

    async fn hang_up(&mut self) {
        if let Some(session) = self.open.take() {
            session.close().await;
        }
    }

    async fn serve(&mut self, job: Job) {
        // Nobody waits for it any more.
        if job.reply.is_closed() {
            return;
        }
        let mut closes = self.closes.clone();
        if job.asked.elapsed() > WAIT_MAX || *closes.borrow() {
            drop(job.reply.send(Err(ReadError::Busy)));
            return;
        }
        let done = match select(pin!(self.read(&job.query)), pin!(closes.wait_for(|closes| *closes))).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(Failure::Closed),
        };
        let answer = done.map_err(|failure| failure.into_read_error(&self.config));
        drop(job.reply.send(answer.and_then(|page| page.ok_or(ReadError::Bookmark))));
    }

    /// The page; `None` where the bookmark is none of this store's.
    async fn read(&mut self, query: &Query) -> Result<Option<Page>, Failure> {
        let mut before = self.open.take();
        let is_fresh = match &mut before {
            Some(session) => session.is_fresh().await,
            None => false,
        };
        let mut session = match before.filter(|_| is_fresh) {
            Some(session) => session,
            None => begin(&self.config).await?,
        };
        let table = self.config.table.quoted();
        let (talk, driver) = session.parts();
        let page = driver.run(page::read(talk, &table, query)).await?;
        self.open = Some(session);
        Ok(page)
    }
}

async fn begin(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = Session::open(config).await?;
    let (talk, driver) = session.parts();
    // The bounds of partitions are read as the server writes them.
    let manners = "set default_transaction_read_only = on; set datestyle = 'ISO'; set timezone = 'UTC'";
    driver.run(talk.order(manners)).await?;
    Ok(session)
}
