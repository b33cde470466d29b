//! The suite on the sinks that need no service: SQLite, and the memory store in both of its ways.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use event::EventId;
use rusqlite::Connection;
use sink::conformance::{Case, Subject, check, sequences};
use sink::{MemoryHandle, Sink, SinkConfig, SqliteConfig, TableName};
use tempfile::TempDir;

/// Random sequences for each sink.
const SEQUENCES: u32 = 48;

struct Sqlite {
    directory: TempDir,
}

impl Sqlite {
    /// A connection past the sink.
    fn open(&self) -> Connection {
        Connection::open(self.directory.path().join("deep/events.db")).unwrap()
    }

    /// Holds the write lock until it is dropped.
    fn lock(&self) -> Connection {
        let connection = self.open();
        connection.execute_batch("begin immediate").unwrap();
        connection
    }
}

impl Subject for Sqlite {
    const COMPARES: bool = true;
    type Hindrance = Connection;

    async fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn sink(&self) -> Sink {
        let path = self.directory.path().join("deep/events.db");
        Sink::new(SinkConfig::Sqlite(SqliteConfig { path, table: TableName::new("events").unwrap() }))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let connection = self.open();
        let mut select = connection.prepare("select id, cast(payload as blob) from events").unwrap();
        let rows = select.query_map([], |row| Ok((EventId(row.get(0)?), row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    async fn spoil(&self, id: EventId) {
        let id = id.to_string().replace('-', "");
        let trigger = format!(
            "create trigger spoil before insert on events when new.id = x'{id}' begin select raise(abort, 'spoilt'); end"
        );
        self.open().execute_batch(&trigger).unwrap();
    }

    async fn outage(&self, stage: usize) -> Option<Connection> {
        (stage == 0).then(|| self.lock())
    }

    async fn stall(&self) -> Connection {
        self.lock()
    }
}

/// The memory store, fenced or keyed.
struct Memory<const FENCED: bool>(MemoryHandle);

/// Takes back what the store was told.
struct Healed(MemoryHandle);

impl Drop for Healed {
    fn drop(&mut self) {
        self.0.heal();
        self.0.release();
    }
}

impl<const FENCED: bool> Subject for Memory<FENCED> {
    const COMPARES: bool = true;
    type Hindrance = Healed;

    async fn fresh() -> Self {
        Self(if FENCED { MemoryHandle::fenced() } else { MemoryHandle::keyed() })
    }

    fn sink(&self) -> Sink {
        Sink::new(SinkConfig::Memory(self.0.clone()))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.events().into_iter().map(|event| (event.id, event.payload)).collect()
    }

    async fn spoil(&self, id: EventId) {
        self.0.refuse_id(id);
    }

    async fn outage(&self, stage: usize) -> Option<Healed> {
        match stage {
            0 => self.0.fail_next(usize::MAX),
            1 => self.0.lose_answers(usize::MAX),
            _ => return None,
        }
        Some(Healed(self.0.clone()))
    }

    async fn stall(&self) -> Healed {
        self.0.block();
        Healed(self.0.clone())
    }
}

#[test]
fn sqlite_passes_each_case() {
    Case::ALL.into_iter().for_each(check::<Sqlite>);
}

#[test]
fn sqlite_follows_the_model() {
    sequences::<Sqlite>(SEQUENCES);
}

#[test]
fn fenced_memory_passes_each_case() {
    Case::ALL.into_iter().for_each(check::<Memory<true>>);
}

#[test]
fn fenced_memory_follows_the_model() {
    sequences::<Memory<true>>(SEQUENCES);
}

#[test]
fn keyed_memory_passes_each_case() {
    Case::ALL.into_iter().for_each(check::<Memory<false>>);
}

#[test]
fn keyed_memory_follows_the_model() {
    sequences::<Memory<false>>(SEQUENCES);
}
