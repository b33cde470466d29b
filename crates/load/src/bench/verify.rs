//! Looks for every acknowledged event in the server's SQLite store, with SQLite alone and nothing of the server's own
//! code: each must be there once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use generator::{Generator, RecordKind};

/// Delivery that stores nothing for so long has nothing more to store.
const QUIET_MAX: Duration = Duration::from_secs(30);
/// A store without any new event isn't the server's.
const NOTHING_MAX: Duration = Duration::from_secs(10);
/// A server that was just started creates its table within this time.
const TABLE_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The check of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreCheck {
    /// Answered 200.
    pub acknowledged: u64,
    /// Answered 200 and not stored.
    pub lost: u64,
    /// Stored more than once.
    pub doubled: u64,
    /// Stored though they were not acknowledged: that may be, as their answer may have been lost.
    pub unacknowledged_stored: u64,
}

impl StoreCheck {
    /// Whether no acknowledged event is there.
    #[must_use]
    pub const fn is_all_lost(&self) -> bool {
        self.acknowledged > 0 && self.lost == self.acknowledged
    }
}

/// The store before the first event is sent.
pub(super) struct Verifier {
    path: PathBuf,
    kind: RecordKind,
    seed: u64,
    /// Rows up to here are older, or were read.
    last_row: i64,
}

impl Verifier {
    /// Looks whether the store can be one that the events go to.
    pub(super) fn new(path: &Path, kind: RecordKind, seed: u64, stop: &AtomicBool) -> anyhow::Result<Self> {
        let mut verifier = Self { path: path.to_owned(), kind, seed, last_row: 0 };
        let begun = Instant::now();
        while let Err(error) = verifier.check_table() {
            if begun.elapsed() > TABLE_MAX || stop.load(Ordering::Relaxed) {
                return Err(error);
            }
            thread::sleep(LOOK_EVERY);
        }
        let query = "select coalesce(max(rowid), 0) from events";
        let last_row = verifier.open().and_then(|store| store.query_row(query, [], |row| row.get(0)));
        verifier.last_row = last_row.map_err(|source| verifier.failed(source))?;
        Ok(verifier)
    }

    fn check_table(&self) -> anyhow::Result<()> {
        if !self.path.exists() {
            bail!(
                "there is no file {}: with --verify, name the SQLite file to which the server writes",
                self.path.display()
            );
        }
        let has_table = self.has_table().map_err(|source| self.failed(source))?;
        if !has_table {
            bail!(
                "{} has no table `events`: --verify needs a SQLite file with the table of the built-in configuration",
                self.path.display()
            );
        }
        Ok(())
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(QUIET_MAX)?;
        Ok(connection)
    }

    fn has_table(&self) -> rusqlite::Result<bool> {
        let query = "select count(*) from sqlite_master where type = 'table' and name = 'events'";
        self.open()?.query_row(query, [], |row| row.get(0))
    }

    fn failed(&self, source: rusqlite::Error) -> anyhow::Error {
        anyhow!(
            "can't read the store {}: {source}. With --verify, name the SQLite file of the server",
            self.path.display()
        )
    }

    /// Waits until every acknowledged event is there, or nothing more arrives.
    pub(super) fn verify(mut self, acknowledged: &[bool], stop: &AtomicBool) -> anyhow::Result<StoreCheck> {
        let numbers = self.numbers(acknowledged.len());
        let mut stored = vec![0_u32; acknowledged.len()];
        let (mut news_at, mut quiet_max) = (Instant::now(), NOTHING_MAX);
        loop {
            let is_quiet = news_at.elapsed() > quiet_max || stop.load(Ordering::Relaxed);
            match self.read_new(&numbers, &mut stored) {
                Ok(0) => {}
                Ok(_) => (news_at, quiet_max) = (Instant::now(), QUIET_MAX),
                Err(error) if is_quiet => return Err(self.failed(error)),
                Err(_) => {}
            }
            let check = judge(acknowledged, &stored);
            if check.lost == 0 || is_quiet {
                return Ok(check);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The number of each event by a checksum of its text: the records of a seed all differ, and of 128 bits no two
    /// are alike.
    fn numbers(&self, count: usize) -> HashMap<u128, usize> {
        let mut generator = Generator::new(self.kind, self.seed);
        let mut line = Vec::new();
        let number = |number| {
            line.clear();
            generator.next_line(&mut line);
            (checksum(line.trim_ascii_end()), number)
        };
        (0..count).map(number).collect()
    }

    /// Counts the new rows since the last check, and which events they are.
    fn read_new(&mut self, numbers: &HashMap<u128, usize>, stored: &mut [u32]) -> rusqlite::Result<u64> {
        let store = self.open()?;
        let mut statement = store.prepare("select rowid, payload from events where rowid > ?1 order by rowid")?;
        let mut rows = statement.query([self.last_row])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let payload = row.get_ref(1)?.as_bytes()?;
            // Others may send events too.
            if let Some(number) = numbers.get(&checksum(payload)) {
                stored[*number] += 1;
            }
            self.last_row = row.get(0)?;
            count += 1;
        }
        Ok(count)
    }
}

fn checksum(payload: &[u8]) -> u128 {
    xxhash_rust::xxh3::xxh3_128(payload)
}

fn judge(acknowledged: &[bool], stored: &[u32]) -> StoreCheck {
    let mut check = StoreCheck::default();
    for (is_acknowledged, count) in acknowledged.iter().zip(stored) {
        check.acknowledged += u64::from(*is_acknowledged);
        check.lost += u64::from(*is_acknowledged && *count == 0);
        check.doubled += u64::from(*count > 1);
        check.unacknowledged_stored += u64::from(!*is_acknowledged && *count > 0);
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_store_is_rejected_before_the_load() {
        let folder = tempfile::tempdir().unwrap();
        // Stopped: it mustn't wait for a table.
        let look =
            |path: &Path| Verifier::new(path, RecordKind::Access, 5, &AtomicBool::new(true)).err().unwrap().to_string();
        assert!(look(&folder.path().join("none")).starts_with("there is no file"));
        let other = folder.path().join("other");
        Connection::open(&other).unwrap().execute_batch("create table other (payload text)").unwrap();
        assert!(look(&other).contains("has no table"));
        std::fs::write(&other, "no database, and longer than a header of one".repeat(100)).unwrap();
        assert!(look(&other).starts_with("can't read the store "));
    }

    #[test]
    fn missing_store_is_no_loss() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.db");
        Connection::open(&path).unwrap().execute_batch("create table events (payload text)").unwrap();
        let stop = AtomicBool::new(true);
        let verifier = Verifier::new(&path, RecordKind::Access, 5, &stop).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(verifier.verify(&[true], &stop).unwrap_err().to_string().starts_with("can't read the store "));
    }

    #[test]
    fn lost_and_doubled_events_are_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = Connection::open(file.path()).unwrap();
        writer.execute_batch("create table events (payload text); insert into events values ('before')").unwrap();
        let stop = AtomicBool::new(true);
        let verifier = Verifier::new(file.path(), RecordKind::Access, 5, &stop).unwrap();
        let mut generator = Generator::new(RecordKind::Access, 5);
        let mut insert = |times| {
            let mut line = Vec::new();
            generator.next_line(&mut line);
            let text = std::str::from_utf8(&line).unwrap().trim_end();
            (0..times).for_each(|_| {
                writer.execute("insert into events values (?1)", [text]).unwrap();
            });
        };
        [1, 2, 0, 1, 0].into_iter().for_each(&mut insert);
        writer.execute("insert into events values ('of another client')", []).unwrap();
        // Stopped: it mustn't wait for the lost one.
        let check = verifier.verify(&[true, true, true, false, false], &stop).unwrap();
        let expected = StoreCheck { acknowledged: 3, lost: 1, doubled: 1, unacknowledged_stored: 1 };
        assert_eq!(check, expected);
    }
}
