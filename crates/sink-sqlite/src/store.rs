//! The store: the handle of the thread that owns the file.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use async_trait::async_trait;
use event::Lane;
use event::read::{Found, Lookup, Page, Query, ReadError};
use tokio::sync::oneshot;

use crate::config::SqliteConfig;
use crate::error;
use crate::reader::Reader;
use crate::writer::{Job, Reply, Writer};
use sink::read_pool::ReadPool;
use sink::{Batch, Capabilities, Claim, Examination, Held, Mark, Retention, SinkError, Store, Takeover, WriteOutcome};

/// The beginning of each file that isn't empty.
const HEAD: &[u8; 16] = b"SQLite format 3\0";
/// Readers, each with a connection: a page that takes long doesn't delay lookups by ids.
const READERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// The handle of the thread that owns the file. The thread begins with the first call and ends with `close`, or with
/// the handle.
pub struct Sqlite {
    config: SqliteConfig,
    retention: Arc<Retention>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    reads: ReadPool,
}

impl Sqlite {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: SqliteConfig) -> Self {
        let to_read = config.clone();
        let reads = ReadPool::new("sqlite-read", READERS_MAX, move || Reader::new(&to_read));
        Self { config, retention: Arc::default(), jobs: Mutex::new(None), reads }
    }

    async fn call<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, SinkError> {
        let (reply, answer) = oneshot::channel();
        self.send(job(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Sends `job` to the thread, and starts one if there is none: at first, after a close, after a panic.
    fn send(&self, job: Job) -> Result<(), SinkError> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match &*jobs {
            Some(running) => match running.send(job) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(job)) => job,
            },
            None => job,
        };
        let (sender, receiver) = mpsc::channel();
        let writer = Writer::new(self.config.clone(), self.retention.clone());
        let thread = std::thread::Builder::new().name("sqlite".into()).spawn(move || writer.run(receiver));
        thread.map_err(|error| error::no_thread(&self.config.path, &error))?;
        // The thread lives as long as its receiver, so the dropped reply reports a failure here.
        let _ = sender.send(job);
        *jobs = Some(sender);
        Ok(())
    }

    fn unanswered(&self) -> SinkError {
        error::unanswered(&self.config.path)
    }
}

#[async_trait]
impl Store for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities { fenced: true, on_this_disk: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.call(Job::Connect).await
    }

    /// Reads the beginning of the file, and not through SQLite, which would create files next to it.
    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        let path = &self.config.path;
        let mut found = Examination::default();
        found.see(format!("SQLite {}", rusqlite::version()));
        let mut head = [0; HEAD.len()];
        match File::open(path).map(|mut file| file.read(&mut head)) {
            Ok(Ok(0)) => found.see(format!("{} is empty", path.display())),
            Ok(Ok(_)) if head == *HEAD => found.see(format!("{} is a database", path.display())),
            Ok(Ok(_)) => found.fail(
                format!("{} is no database, or is damaged", path.display()),
                "Move it away, or restore a copy of it",
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                found.see(format!("{} doesn't exist yet", path.display()));
            }
            Ok(Err(error)) | Err(error) => found.fail(
                format!("{} can't be read: {error}", path.display()),
                "Run the command as the user that runs Forebay, or give that user the file",
            ),
        }
        Ok(found)
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.call(Job::Mark).await.map(Some)
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.call(|reply| Job::Read(lane.clone(), reply)).await.map(Some)
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        self.call(|reply| Job::Claim((lane.clone(), claim, takeover.clone()), reply)).await.map(Some)
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        self.call(|reply| Job::Write(batch.clone(), reply)).await
    }

    fn can_read(&self) -> bool {
        true
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        self.reads.read(query).await
    }

    async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        self.reads.get(lookup).await
    }

    fn retention(&self) -> Option<&Retention> {
        self.config.retention.is_some().then_some(&*self.retention)
    }

    async fn close(&self) -> Result<(), SinkError> {
        // First, so the writer's connection is the last: it leaves the store in one file.
        self.reads.close().await;
        let (reply, answer) = oneshot::channel();
        match self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that has ended has nothing to close.
            Some(jobs) if jobs.send(Job::Close(reply)).is_ok() => {}
            _ => return Ok(()),
        }
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }
}

#[cfg(test)]
mod tests;
