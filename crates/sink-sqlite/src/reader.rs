//! The thread that reads: it has a connection of its own, which can't write, and nothing that it does holds up the
//! thread that writes. It begins with the first read.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use event::read::{Page, Query, ReadError};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::file_identity::FileIdentity;
use super::page::{self, ReadSql};
use super::{SqliteConfig, error};

/// Reads that wait for the thread.
const WAITING_MAX: usize = 32;
/// A read that has waited for so long isn't begun any more.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a read waits for another connection's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// A connection that nobody needs is closed: its memory is given back.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A read that waits.
struct Job {
    query: Query,
    asked: Instant,
    reply: oneshot::Sender<Result<Page, ReadError>>,
}

/// The handle on the thread.
pub(super) struct ReadThread {
    config: SqliteConfig,
    running: Mutex<Option<Running>>,
}

struct Running {
    jobs: SyncSender<Job>,
    /// What waits isn't begun any more.
    closes: Arc<AtomicBool>,
    /// Comes to an end with the thread.
    ended: oneshot::Receiver<()>,
}

impl ReadThread {
    pub(super) const fn new(config: SqliteConfig) -> Self {
        Self { config, running: Mutex::new(None) }
    }

    pub(super) async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job { query, asked: Instant::now(), reply })?;
        answer.await.unwrap_or_else(|_| Err(error::of_unanswered_read(&self.config.path)))
    }

    /// Ends the read in hand, refuses those that wait, and closes the connection. A later read opens another.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { jobs, closes, ended }) = running {
            closes.store(true, Ordering::Relaxed);
            drop(jobs);
            // Nothing is ever sent: the thread's end is what is waited for.
            let _ = ended.await;
        }
    }

    /// Hands a job to the thread, and starts one where there is none.
    fn send(&self, job: Job) -> Result<(), ReadError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match running.as_ref().map(|running| &running.jobs) {
            None => job,
            Some(jobs) => match jobs.try_send(job) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => return Err(ReadError::Busy),
                Err(TrySendError::Disconnected(job)) => job,
            },
        };
        let (jobs, received) = sync_channel(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let closes = Arc::<AtomicBool>::default();
        let sql = ReadSql::new(&self.config.table);
        let work = Work { sql, path: self.config.path.clone(), closes: closes.clone(), open: None };
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            work.run(&received);
        };
        let thread = std::thread::Builder::new().name("sqlite-read".into()).spawn(run);
        thread.map_err(|error| error::of_missing_read_thread(&self.config.path, &error))?;
        // The thread lives as long as its receiver does, so a failure here is answered by the dropped reply.
        let _ = jobs.try_send(job);
        *running = Some(Running { jobs, closes, ended });
        Ok(())
    }
}

impl fmt::Debug for ReadThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadThread").field(&self.config).finish()
    }
}

/// The thread's own state.
struct Work {
    sql: ReadSql,
    path: PathBuf,
    closes: Arc<AtomicBool>,
    open: Option<(Connection, Option<FileIdentity>)>,
}

impl Work {
    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(IDLE_MAX) {
                Ok(job) => self.serve(job),
                Err(RecvTimeoutError::Timeout) => {
                    self.open = None;
                    match jobs.recv() {
                        Ok(job) => self.serve(job),
                        Err(_) => return,
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn serve(&mut self, job: Job) {
        // Nobody waits for it any more.
        if job.reply.is_closed() {
            return;
        }
        let is_late = job.asked.elapsed() > WAIT_MAX || self.closes.load(Ordering::Relaxed);
        let answer = if is_late { Err(ReadError::Busy) } else { self.read(&job.query) };
        drop(job.reply.send(answer));
    }

    fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        let connection = self.connection()?;
        match page::read(&connection, &self.sql, query) {
            Ok(page) => {
                self.open = Some((connection, FileIdentity::of(&self.path)));
                page.ok_or(ReadError::Bookmark)
            }
            Err(error) => Err(error::of_read(&self.path, &error)),
        }
    }

    /// A connection to the file that the path leads to now. Whoever uses it puts it back, unless it failed.
    fn connection(&mut self) -> Result<Connection, ReadError> {
        let now = FileIdentity::of(&self.path);
        if let Some((connection, file)) = self.open.take()
            && file == now
        {
            return Ok(connection);
        }
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        };
        open().map_err(|error| error::of_read(&self.path, &error))
    }
}
