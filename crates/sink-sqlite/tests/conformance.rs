//! The conformance suite on SQLite, also through real writers.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use event::EventId;
use rusqlite::Connection;
use sink::{Sink, TableName};
use sink_sqlite::SqliteConfig;
use sink_testing::conformance::{SinkHarness, check, sequences};
use tempfile::TempDir;

use sink_testing::through_writer::{Offers, Through};

/// Random sequences for each sink.
const SEQUENCES: u32 = 48;
/// The same through writers, which takes longer.
const SEQUENCES_THROUGH: u32 = 16;

struct Sqlite {
    directory: TempDir,
}

impl Sqlite {
    /// A connection that bypasses the sink.
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

impl SinkHarness for Sqlite {
    const COMPARES: bool = true;
    type Fault = Connection;

    async fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn sink(&self) -> Sink {
        let path = self.directory.path().join("deep/events.db");
        Sink::new(sink_sqlite::Sqlite::new(SqliteConfig {
            path,
            table: TableName::new("events").unwrap(),
            retention: None,
        }))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let connection = self.open();
        let mut select = connection.prepare("select id, cast(payload as blob) from events").unwrap();
        let rows = select.query_map([], |row| Ok((EventId(row.get(0)?), row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    async fn poison(&self, id: EventId) {
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

impl Offers for Sqlite {
    const STORE: &'static str = "sqlite";
    const READS: bool = true;
}

#[test]
fn sqlite_passes_each_case_through_writers() {
    check::<Through<Sqlite>>();
    sequences::<Through<Sqlite>>(SEQUENCES_THROUGH);
}

#[test]
fn sqlite_passes_each_case() {
    check::<Sqlite>();
}

#[test]
fn sqlite_follows_the_model() {
    sequences::<Sqlite>(SEQUENCES);
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    sink_testing::odd_frames::are_rejected::<Sqlite>().await;
}
