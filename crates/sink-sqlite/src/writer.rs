//! The thread that owns the connection: it runs one job after the other, and between them checkpoints and deletes old
//! rows.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use event::Lane;
use rusqlite::Connection;
use rustix::fs::statvfs;
use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use super::config::SqliteConfig;
use super::file_identity::FileIdentity;
use super::retention::{ROW_BYTES, Retention};
use super::rows::Sql;
use super::transaction::{Enders, Written};
use super::{error, mark, schema, transaction};
use sink::{Batch, Claim, Held, Mark, SinkError, Takeover, WriteOutcome};

/// The receiver of a job's result. The caller may have stopped waiting.
pub(super) type Reply<T> = oneshot::Sender<Result<T, SinkError>>;

/// A job of the thread.
pub(super) enum Job {
    /// Opens the file.
    Connect(Reply<()>),
    /// Reads the file's store id.
    Mark(Reply<Mark>),
    /// Reads a lane's cursor and claim.
    Read(Lane, Reply<Held>),
    /// Exchanges the claim on a lane.
    Claim((Lane, Claim, Takeover), Reply<Held>),
    /// Writes a batch.
    Write(Batch, Reply<WriteOutcome>),
    /// Closes the file: the last job of a thread.
    Close(Reply<()>),
}

/// Estimated bytes in the write-ahead log from which on it is copied into the table in the next pause. A greater value
/// means fewer copies of the pages that every batch changes, and a longer log to recover and to keep on disk.
pub(super) const CHECKPOINT_BYTES: usize = 16 * 1024 * 1024;
/// The same without a pause. While batches arrive without a pause, the disk is left to the log and to the intake.
pub(super) const CHECKPOINT_BYTES_MAX: usize = 128 * 1024 * 1024;
/// On a small disk the log uses at most this part of it, but at least a MiB: its content must fit in the table too.
const CHECKPOINT_PART: u64 = 32;
const CHECKPOINT_BYTES_MIN: u64 = 1024 * 1024;
/// How much the thread lowers its priority. It still gets a third of the time of an intake thread (sched(7)), so
/// pending events don't accumulate while clients are busy.
const NICE: i32 = 5;
/// This long without a batch is a pause: delivery collects events for less.
const PAUSE: Duration = Duration::from_millis(30);
/// What a transaction adds to that log in addition to payload: normally at most a page each of the table, of its index
/// and of the cursors, and a split one.
pub(super) const TRANSACTION_BYTES: usize = 4 * 4096;

/// The thread's own state.
pub(super) struct Writer {
    config: SqliteConfig,
    sql: Sql,
    connection: Option<Connection>,
    /// The file that the connection has open.
    file: Option<FileIdentity>,
    /// Records that ended the transactions of their lanes.
    enders: HashMap<Lane, Enders>,
    /// `None` if all rows are kept.
    retention: Option<Retention>,
    uncopied_bytes: usize,
    /// From this many on they are copied without waiting for a pause.
    log_bytes_max: usize,
}

impl Writer {
    pub(super) fn new(config: SqliteConfig, reports: Arc<sink::Retention>) -> Self {
        let sql = Sql::new(&config.table);
        let retention = Retention::new(&config, reports);
        Self {
            config,
            sql,
            connection: None,
            file: None,
            enders: HashMap::new(),
            retention,
            uncopied_bytes: 0,
            log_bytes_max: CHECKPOINT_BYTES_MAX,
        }
    }

    /// Works until the last handle is dropped or a job closes the file, which isn't opened again then.
    pub(super) fn run(mut self, jobs: Receiver<Job>) {
        lower_priority();
        while let Some(job) = self.next(&jobs) {
            match job {
                Job::Connect(reply) => drop(reply.send(self.with(|_, _| Ok(())))),
                Job::Mark(reply) => drop(reply.send(self.with(|connection, _| mark::of(connection)))),
                Job::Read(lane, reply) => drop(reply.send(self.read(&lane))),
                Job::Claim((lane, claim, takeover), reply) => drop(reply.send(self.claim(&lane, claim, &takeover))),
                Job::Write(batch, reply) => self.write(&batch, reply),
                Job::Close(reply) => {
                    let closed = self.close();
                    drop(reply.send(closed));
                    // Retention would open the file again.
                    return;
                }
            }
        }
    }

    /// The next job. Until it arrives, old rows are deleted, and the log is copied in a pause or at the last moment.
    fn next(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        loop {
            let due = self.delete_old();
            if self.uncopied_bytes >= self.log_bytes_max {
                self.copy_log();
            }
            let pause = (self.uncopied_bytes >= CHECKPOINT_BYTES).then_some(PAUSE);
            let Some(wait) = pause.into_iter().chain(due).min() else { return jobs.recv().ok() };
            match jobs.recv_timeout(wait) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if pause.is_some() => self.copy_log(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Deletes some of the old rows, if that is due. Returns the time until it is due again.
    fn delete_old(&mut self) -> Option<Duration> {
        let mut retention = self.retention.take()?;
        if retention.due_in() == Some(Duration::ZERO) {
            let began = Instant::now();
            // A removed file isn't created again for that.
            let is_there = FileIdentity::of(&self.config.path).is_some();
            let deleted = if is_there { self.with(|connection, _| retention.step(connection)) } else { Ok(0) };
            self.uncopied_bytes += deleted.as_ref().map_or(0, |rows| rows * ROW_BYTES);
            retention.done(began.elapsed(), deleted.err());
        }
        let due = retention.due_in();
        self.retention = Some(retention);
        due
    }

    fn read(&mut self, lane: &Lane) -> Result<Held, SinkError> {
        let (position, claim) = self.with(|connection, _| transaction::read(connection, lane))?;
        Ok(Held::new(position, claim))
    }

    fn claim(&mut self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Held, SinkError> {
        let (position, held) =
            self.with(|connection, _| transaction::exchange_claim(connection, lane, claim, takeover))?;
        Ok(Held::new(position, held))
    }

    /// Writes and replies, and only then checkpoints: delivery builds the next batch during that time.
    fn write(&mut self, batch: &Batch, reply: Reply<WriteOutcome>) {
        let report = self.store(batch);
        drop(reply.send(report));
        self.uncopied_bytes = self.uncopied_bytes.saturating_add(batch.payload_bytes() + TRANSACTION_BYTES);
    }

    fn copy_log(&mut self) {
        self.uncopied_bytes = 0;
        // A checkpoint that fails or is blocked by readers only means a longer log: the next one continues.
        let _ = self.with(|connection, _| checkpoint(connection, "passive"));
    }

    fn store(&mut self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let mut enders = self.enders.remove(batch.lane()).unwrap_or_default();
        let written = self.with(|connection, sql| {
            if batch.mark().is_some() {
                let mark = mark::of(connection)?;
                if !mark.is_expected(batch.mark()) {
                    return Ok(Written::Elsewhere(mark));
                }
            }
            transaction::write(connection, sql, batch, &mut enders)
        });
        if written.is_err() && !enders.is_empty() {
            self.enders.insert(batch.lane().clone(), enders);
        }
        match written? {
            Written::WriteOutcome(report) => Ok(report),
            Written::Nothing { position } => Err(error::lost_tail(&self.config.path, position, batch.floor())),
            Written::Elsewhere(mark) => Err(SinkError::OtherStore(mark)),
            Written::Unclaimed => Err(error::claimed(&self.config.path)),
        }
    }

    /// Does `work` on the open connection. A connection that failed is dropped, which rolls back its transaction.
    fn with<T>(&mut self, work: impl FnOnce(&mut Connection, &Sql) -> rusqlite::Result<T>) -> Result<T, SinkError> {
        // A file that was removed or replaced can still be written to, but its rows would be lost.
        let open = self.connection.take().filter(|_| self.file == FileIdentity::of(&self.config.path));
        let mut connection = match open {
            Some(connection) => connection,
            None => {
                let connection = schema::open(&self.config, &self.sql)?;
                self.file = FileIdentity::of(&self.config.path);
                if let Some(retention) = &mut self.retention {
                    retention.begin();
                }
                self.log_bytes_max = log_bytes_max(&self.config.path);
                // The log of a killed process is still there: without this it would grow with each kill.
                self.uncopied_bytes = log_bytes(&self.config.path);
                connection
            }
        };
        let done = work(&mut connection, &self.sql);
        if done.as_ref().err().is_none_or(error::is_busy) {
            self.connection = Some(connection);
        }
        done.map_err(|error| error::classify(&self.config.path, &error))
    }

    /// Leaves the whole store in one file, unless others are reading it: then the log stays next to it.
    fn close(&mut self) -> Result<(), SinkError> {
        let Some(connection) = self.connection.take() else { return Ok(()) };
        let tidied = checkpoint(&connection, "truncate");
        let closed = connection.close().map_err(|(_, error)| error);
        tidied.and(closed).map_err(|error| error::classify(&self.config.path, &error))
    }
}

/// The size of the log of a file.
fn log_bytes(path: &Path) -> usize {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| usize::try_from(log.len()).unwrap_or(usize::MAX))
}

/// The maximum size of the log of a file, by its disk.
fn log_bytes_max(path: &Path) -> usize {
    let all = statvfs(path).map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    let part = (all / CHECKPOINT_PART).max(CHECKPOINT_BYTES_MIN);
    usize::try_from(part).unwrap_or(usize::MAX).min(CHECKPOINT_BYTES_MAX)
}

/// Gives the intake precedence if there are few cores: clients wait for it, and none waits for the store.
fn lower_priority() {
    // Without a process id it applies to the calling thread only (sched(7)). A failure only loses the precedence.
    let _ = setpriority_process(None, NICE);
}

/// Copies the write-ahead log into the file, as much as readers allow.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    connection.pragma(None, "wal_checkpoint", mode, |_| Ok(()))
}
