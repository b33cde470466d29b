//! Files, tables, conflicts and full disks, with a separate connection of the test.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use event::{EventId, Origin};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::*;
use sink::{Record, TableName, Write};

use crate::{fault, rows, schema, transaction, writer};

fn at(path: PathBuf) -> Sqlite {
    Sqlite::new(SqliteConfig { path, table: TableName::new("events").unwrap(), retention: None })
}

fn fresh() -> (TempDir, Sqlite) {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = at(directory.path().join("events.db"));
    (directory, sqlite)
}

fn connection_to(directory: &TempDir) -> Connection {
    Connection::open(directory.path().join("events.db")).unwrap()
}

fn lane() -> Lane {
    Lane { origin: Origin([1; 16]), shard: 3, sink: "local".into() }
}

/// Records with the ids 1, 2 … from position `first` on.
fn batch(first: u64, count: u8) -> Batch {
    let block = Bytes::from_static(b"typesource{}");
    let text = std::str::from_utf8(&block).unwrap();
    let mut batch = Batch::new(lane(), first);
    for number in 0..count {
        let sequence = first + u64::from(number);
        let id = EventId([u8::try_from(sequence).unwrap(); 16]);
        let (type_name, source, payload) = (&text[..4], &text[4..10], &block[10..]);
        let record =
            Record { sequence, id, type_name, source, received_at: 7, event_time: None, write: Write::Insert, payload };
        batch.push(&block, &record);
    }
    batch
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// The position up to which a lane is stored.
fn stored_up_to(sqlite: &Sqlite, lane: &Lane) -> Result<u64, SinkError> {
    run(sqlite.held(lane)).map(|held| held.unwrap().position)
}

#[test]
fn file_without_claims_gets_a_column() {
    let (directory, sqlite) = fresh();
    let old = "create table forebay_cursors (origin blob not null, shard integer not null, sink text not null,
        position integer not null, primary key (origin, shard, sink)) without rowid;
        insert into forebay_cursors values (zeroblob(16), 0, 'x', 7)";
    connection_to(&directory).execute_batch(old).unwrap();
    let lane = Lane { origin: event::Origin([0; 16]), shard: 0, sink: "x".into() };
    assert_eq!(run(sqlite.held(&lane)), Ok(Some(Held { position: 7, claims: Vec::new() })));
    let claim = Claim([5; 16]);
    let held = Ok(Some(Held { position: 7, claims: vec![claim] }));
    assert_eq!(run(sqlite.claim(&lane, claim, &Takeover::Known([].into()))), held);
    assert_eq!(run(sqlite.held(&lane)), held);
}

#[test]
fn the_file_is_as_documented() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 1))), Ok(WriteOutcome::Committed));
    let reader = connection_to(&directory);
    let row = "select hex(id) || '|' || typeof(id) || '|' || type || '|' || source || '|' || received_at || '|' || payload \
               || '|' || typeof(payload) from events";
    let row: String = reader.query_row(row, [], |row| row.get(0)).unwrap();
    assert_eq!(row, format!("{}|blob|type|source|7|{{}}|text", "01".repeat(16)));
    let mode: String = reader.query_row("pragma journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let cursor = "select shard, sink, position from forebay_cursors";
    let cursor = reader.query_row(cursor, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    assert_eq!(cursor, Ok((3, "local".to_owned(), 1)));
}

#[test]
fn commits_are_synced() {
    let (_directory, sqlite) = fresh();
    let connection = schema::open(&sqlite.config, &rows::Sql::new(&sqlite.config.table)).unwrap();
    let full: i64 = connection.query_row("pragma synchronous", [], |row| row.get(0)).unwrap();
    assert_eq!(full, 2, "2 is full");
}

#[test]
fn a_close_leaves_one_file() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    let names = || std::fs::read_dir(directory.path()).unwrap().count();
    assert!(names() > 1, "there is a write-ahead log");
    assert_eq!(run(sqlite.close()), Ok(()));
    assert_eq!(names(), 1);
    assert_eq!(run(sqlite.close()), Ok(()));
    assert_eq!(stored_up_to(&sqlite, &lane()), Ok(2));
}

#[test]
fn missing_columns_are_named() {
    let (directory, sqlite) = fresh();
    connection_to(&directory).execute_batch("create table events (id blob unique, Type text, payload text)").unwrap();
    let Err(SinkError::Misconfigured(reason)) = run(sqlite.connect()) else { panic!("it must be rejected") };
    assert!(reason.contains("no column source, received_at:") && reason.contains("events.db"), "{reason}");
}

#[test]
fn id_without_unique_index_is_rejected() {
    let (directory, sqlite) = fresh();
    let table = "create table events (id blob, type text, source text, received_at integer, payload text)";
    connection_to(&directory).execute_batch(table).unwrap();
    assert!(matches!(run(sqlite.connect()), Err(SinkError::Misconfigured(_))));
}

#[test]
fn other_file_is_not_changed() {
    let (directory, sqlite) = fresh();
    let path = directory.path().join("events.db");
    let text = "no database, but longer than the header of one ".repeat(10);
    std::fs::write(&path, &text).unwrap();
    let Err(SinkError::Misconfigured(reason)) = run(sqlite.connect()) else { panic!("it must be rejected") };
    assert!(reason.contains("is damaged or not a database"), "{reason}");
    drop(sqlite);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn file_in_place_of_a_directory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let answer = run(at(directory.path().join("file/events.db")).connect());
    assert!(matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
}

#[test]
fn lock_is_reported_after_a_wait() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.connect()), Ok(()));
    let other = connection_to(&directory);
    other.execute_batch("begin immediate").unwrap();
    let Err(SinkError::Unavailable(reason)) = run(sqlite.write(&batch(1, 2))) else { panic!("it can't be written") };
    assert!(reason.contains("locked by another connection") && reason.contains("events.db"), "{reason}");
    other.execute_batch("rollback").unwrap();
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
}

#[test]
fn a_full_disk_rolls_back_and_passes() {
    let (directory, sqlite) = fresh();
    let sql = rows::Sql::new(&sqlite.config.table);
    let mut connection = schema::open(&sqlite.config, &sql).unwrap();
    let pages: i64 = connection.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
    let limit = |connection: &Connection, pages: i64| {
        connection.pragma(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    limit(&connection, pages);
    let large = Bytes::from(format!("t{}", "x".repeat(100_000)));
    let mut batch = batch(1, 3);
    let record = Record { sequence: 4, id: EventId([9; 16]), payload: &large[1..], ..batch.get(0).unwrap() };
    let (type_name, source) = (std::str::from_utf8(&large[..1]).unwrap(), "");
    let record = Record { type_name, source, ..record };
    let mut whole = batch.clone();
    whole.push(&large, &record);
    let error = transaction::write(&mut connection, &sql, &whole, &mut Default::default()).unwrap_err();
    assert!(matches!(error::classify(&sqlite.config.path, &error), SinkError::Unavailable(_)), "{error}");
    assert!(connection.is_autocommit(), "rolled back");
    let count = |table| -> i64 {
        connection_to(&directory).query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("events"), count("forebay_cursors")), (0, 0));
    limit(&connection, pages + 100);
    batch = whole;
    let written = transaction::write(&mut connection, &sql, &batch, &mut Default::default());
    assert_eq!(written, Ok(transaction::Written::WriteOutcome(WriteOutcome::Committed)));
    assert_eq!(count("events"), 4);
}

#[test]
fn full_disk_rejects_no_record() {
    let (directory, sqlite) = fresh();
    let sql = rows::Sql::new(&sqlite.config.table);
    let mut connection = schema::open(&sqlite.config, &sql).unwrap();
    let pages: i64 = connection.query_row("pragma page_count", [], |row| row.get(0)).unwrap();
    let limit = |connection: &Connection, pages: i64| {
        connection.pragma(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    let large = Bytes::from(format!("t{}", "x".repeat(20_000)));
    let small = batch(1, 3);
    let mut whole = small.clone();
    for sequence in 4..12_u8 {
        let record = Record {
            sequence: sequence.into(),
            id: EventId([sequence; 16]),
            type_name: std::str::from_utf8(&large[..1]).unwrap(),
            source: "",
            payload: &large[1..],
            ..small.get(0).unwrap()
        };
        whole.push(&large, &record);
    }
    let mut enders = Default::default();
    // SQLite ends the transaction at one record or another, including the last one, which is retried after all others
    // were accepted.
    for room in (2..38).chain(2..38) {
        limit(&connection, pages + room);
        let error = transaction::write(&mut connection, &sql, &whole, &mut enders).unwrap_err();
        assert_eq!(fault::fault(&error), sink::Fault::Store, "{error}");
        assert!(connection.is_autocommit() && enders.is_empty(), "{room} pages: {enders:?}");
    }
    limit(&connection, pages + 1_000);
    let written = transaction::write(&mut connection, &sql, &whole, &mut enders);
    assert_eq!(written, Ok(transaction::Written::WriteOutcome(WriteOutcome::Committed)));
    let count: i64 = connection_to(&directory).query_row("select count(*) from events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 11);
}

#[test]
fn dropped_table_is_created_again() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    connection_to(&directory).execute_batch("drop table events").unwrap();
    assert!(matches!(run(sqlite.write(&batch(3, 1))), Err(SinkError::Misconfigured(_))));
    assert_eq!(run(sqlite.write(&batch(3, 1))), Ok(WriteOutcome::Committed));
}

#[test]
fn a_trigger_that_ends_the_transaction_leaves_nothing() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.connect()), Ok(()));
    let id = "02".repeat(16);
    let trigger = format!(
        "create trigger t before insert on events when new.id = x'{id}' begin select raise(rollback, 'no'); end"
    );
    connection_to(&directory).execute_batch(&trigger).unwrap();
    assert!(matches!(run(sqlite.write(&batch(1, 3))), Err(SinkError::Misconfigured(_))));
    let count: i64 = connection_to(&directory).query_row("select count(*) from events", [], |row| row.get(0)).unwrap();
    assert_eq!((count, stored_up_to(&sqlite, &lane())), (0, Ok(0)));
}

/// The records that a table rejects with this trigger: up to two attempts may fail before.
fn rejected_by(body: &str, batch: &Batch) -> (Vec<usize>, usize) {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.connect()), Ok(()));
    let trigger = format!("create trigger t before insert on events {body}");
    connection_to(&directory).execute_batch(&trigger).unwrap();
    for failed in 0..3 {
        match run(sqlite.write(batch)) {
            Ok(WriteOutcome::Rejected { refused }) => {
                let indices: Vec<usize> = refused.iter().map(|refusal| refusal.index).collect();
                assert_eq!(run(sqlite.write(&batch.without(&indices))), Ok(WriteOutcome::Committed));
                return (indices, failed);
            }
            Err(SinkError::Misconfigured(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(run(sqlite.held(&lane())).map(|held| held.unwrap().position), Ok(0));
    (Vec::new(), 3)
}

#[test]
fn row_rejected_by_a_trigger_is_rejected_alone() {
    let bad = format!("new.id = x'{}'", "02".repeat(16));
    for (what, failed) in [
        ("raise(abort, 'no')", 0),
        ("raise(fail, 'no')", 0),
        // These have no code that distinguishes a row from the table.
        ("json_extract('{', '$.a')", 0),
        ("abs(-9223372036854775807 - 1)", 0),
        // The row ends the transaction: it is tried after its neighbours from then on.
        ("raise(rollback, 'no')", 2),
    ] {
        let found = rejected_by(&format!("when {bad} begin select {what}; end"), &batch(1, 3));
        assert_eq!(found, (vec![1], failed), "{what}");
    }
}

#[test]
fn table_that_rejects_all_rows_rejects_no_event() {
    for what in ["json_extract('{', '$.a')", "raise(rollback, 'no')"] {
        assert_eq!(rejected_by(&format!("begin select {what}; end"), &batch(1, 3)), (vec![], 3), "{what}");
    }
}

#[test]
fn row_discarded_by_a_trigger_is_rejected() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.connect()), Ok(()));
    let trigger = "create trigger t before insert on events begin select raise(ignore); end";
    connection_to(&directory).execute_batch(trigger).unwrap();
    let Ok(WriteOutcome::Rejected { refused }) = run(sqlite.write(&batch(1, 2))) else { panic!("nothing was stored") };
    assert_eq!(refused.len(), 2);
}

#[test]
fn positions_keep_all_their_bits() {
    let (_directory, sqlite) = fresh();
    let mut empty = Batch::new(lane(), 1);
    for position in [1 << 62, 1 << 63, u64::MAX] {
        empty.cover(position);
        assert_eq!(run(sqlite.write(&empty)), Ok(WriteOutcome::Committed));
        assert_eq!(stored_up_to(&sqlite, &lane()), Ok(position));
    }
}

#[test]
fn open_snapshot_of_a_reader_blocks_no_write() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.connect()), Ok(()));
    let reader = connection_to(&directory);
    reader.execute_batch("begin; select * from events").unwrap();
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    let count: i64 = reader.query_row("select count(*) from events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 0, "the snapshot is unchanged");
    reader.execute_batch("commit").unwrap();
    assert_eq!(run(sqlite.close()), Ok(()));
}

/// Moves the cursor this many times, one position each.
fn write_empty_batches(sqlite: &Sqlite, count: usize) {
    let mut empty = Batch::new(lane(), 1);
    for position in 1..=count as u64 {
        empty.cover(position);
        assert_eq!(run(sqlite.write(&empty)), Ok(WriteOutcome::Committed));
    }
}

#[test]
fn batches_without_a_pause_leave_no_endless_log() {
    let (directory, sqlite) = fresh();
    let most = writer::CHECKPOINT_BYTES_MAX / writer::TRANSACTION_BYTES;
    write_empty_batches(&sqlite, most * 5 / 4);
    let log = std::fs::metadata(directory.path().join("events.db-wal")).unwrap().len();
    assert!(log < most as u64 * 9 / 8 * 4096, "{log} bytes");
}

#[test]
fn log_is_copied_in_a_pause() {
    let (directory, sqlite) = fresh();
    let count = writer::CHECKPOINT_BYTES / writer::TRANSACTION_BYTES;
    write_empty_batches(&sqlite, count);
    let began = Instant::now();
    while position_in_the_file_alone(&directory) != Some(count as u64) {
        assert!(began.elapsed() < Duration::from_mins(2), "nothing is copied");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Without it the log would grow with each kill, and could exceed the space of a small disk.
#[test]
fn log_left_by_another_process_is_copied() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 1))), Ok(WriteOutcome::Committed));
    let left = connection_to(&directory);
    let bulk = format!("insert into bulk values (zeroblob({}))", writer::CHECKPOINT_BYTES);
    left.execute_batch(&format!("pragma wal_autocheckpoint = 0; create table bulk (bytes); {bulk}")).unwrap();
    drop(sqlite);
    let again = at(directory.path().join("events.db"));
    assert_eq!(run(again.write(&batch(2, 1))), Ok(WriteOutcome::Committed));
    let began = Instant::now();
    while position_in_the_file_alone(&directory) != Some(2) {
        assert!(began.elapsed() < Duration::from_mins(2), "nothing is copied");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The cursor in the file without its log; `None` while the log is being copied.
fn position_in_the_file_alone(directory: &TempDir) -> Option<u64> {
    let path = format!("file:{}?immutable=1", directory.path().join("events.db").display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let file = Connection::open_with_flags(path, flags).ok()?;
    file.query_row("select position from forebay_cursors", [], |row| row.get(0)).ok().map(i64::cast_unsigned)
}

#[test]
fn replaced_file_rejects_a_gap() {
    let (directory, sqlite) = fresh();
    let (mut second, other) = (batch(3, 1).sent_after(2, 2), Lane { shard: 4, ..lane() });
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    assert_eq!(run(sqlite.connect()), Ok(()));
    // Another lane's call fails and drops the connection; the next call opens the current file.
    connection_to(&directory).execute_batch("drop table events").unwrap();
    assert!(matches!(run(sqlite.write(&second)), Err(SinkError::Misconfigured(_))));
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        std::fs::remove_file(directory.path().join(name)).unwrap_or_default();
    }
    assert_eq!(stored_up_to(&sqlite, &other), Ok(0));
    let Err(SinkError::Unavailable(reason)) = run(sqlite.write(&second)) else { panic!("1 and 2 are missing") };
    assert!(reason.contains("events.db"), "{reason}");
    assert_eq!(stored_up_to(&sqlite, &lane()), Ok(0), "and delivery can continue from there");
    second = batch(1, 3);
    assert_eq!(run(sqlite.write(&second)), Ok(WriteOutcome::Committed));
}

#[test]
fn removed_file_accepts_nothing() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 2))), Ok(WriteOutcome::Committed));
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        std::fs::remove_file(directory.path().join(name)).unwrap();
    }
    let Err(SinkError::Unavailable(reason)) = run(sqlite.write(&batch(3, 1).sent_after(2, 2))) else {
        panic!("1 and 2 are missing")
    };
    assert!(reason.contains("events.db"), "{reason}");
    assert_eq!(stored_up_to(&sqlite, &lane()), Ok(0));
    assert_eq!(run(sqlite.write(&batch(1, 3))), Ok(WriteOutcome::Committed));
}

#[test]
fn file_before_the_minimum_position_accepts_nothing() {
    let (directory, sqlite) = fresh();
    assert_eq!(run(sqlite.write(&batch(1, 3))), Ok(WriteOutcome::Committed));
    connection_to(&directory).execute_batch("update forebay_cursors set position = 1").unwrap();
    let next = batch(4, 2);
    assert!(
        matches!(run(sqlite.write(&next.clone().sent_after(3, 3))), Err(SinkError::Unavailable(_))),
        "2 and 3 are lost"
    );
    assert_eq!(stored_up_to(&sqlite, &lane()), Ok(1));
}

/// A result of an aggregate.
fn result(sink: &str, position: u64, revision: u64, payload: &'static [u8]) -> Batch {
    let mut batch = Batch::new(Lane { sink: sink.into(), ..lane() }, position);
    let block = Bytes::from([b"t", payload].concat());
    let type_name = std::str::from_utf8(&block[..1]).unwrap();
    let record = Record {
        sequence: position,
        id: EventId([9; 16]),
        type_name,
        source: &type_name[1..],
        received_at: 7,
        event_time: None,
        write: Write::Upsert(revision),
        payload: &block[1..],
    };
    batch.push(&block, &record);
    batch
}

#[test]
fn tables_of_one_file_have_separate_revisions() {
    let (directory, first) = fresh();
    let path = directory.path().join("events.db");
    let second = Sqlite::new(SqliteConfig { path, table: TableName::new("Other").unwrap(), retention: None });
    for (position, payload) in [(1, &b"1"[..]), (2, b"2")] {
        for (sink, sqlite) in [("first", &first), ("second", &second)] {
            assert_eq!(run(sqlite.write(&result(sink, position, position, payload))), Ok(WriteOutcome::Committed));
        }
        for table in ["events", "other"] {
            let stored: String = connection_to(&directory)
                .query_row(&format!("select payload from {table}"), [], |row| row.get(0))
                .unwrap();
            assert_eq!(stored.as_bytes(), payload, "{table}");
        }
    }
}

#[test]
fn shared_revisions_are_split_by_table() {
    let (directory, sqlite) = fresh();
    let table = |name| {
        format!(
            "create table {name} (id blob not null unique, type text, source text, received_at integer, payload text)"
        )
    };
    let old = format!(
        "{}; {}; create table forebay_revisions (id blob primary key, revision integer not null) without rowid; \
         insert into events select value, 't', '', 7, '3' from (select x'{id}' as value); \
         insert into forebay_revisions values (x'{id}', 3), (zeroblob(16), 4)",
        table("events"),
        table("Other"),
        id = "09".repeat(16)
    );
    connection_to(&directory).execute_batch(&old).unwrap();
    assert_eq!(
        run(sqlite.write(&result("local", 1, 2, b"2"))),
        Ok(WriteOutcome::Committed),
        "an earlier revision changes nothing"
    );
    let stored = |what: &str| -> String { connection_to(&directory).query_row(what, [], |row| row.get(0)).unwrap() };
    assert_eq!(stored("select payload from events"), "3");
    let revisions = "select group_concat(\"table\" || ' ' || hex(id) || ' ' || revision) from forebay_revisions";
    assert_eq!(stored(revisions), format!("events {} 3", "09".repeat(16)));
    assert_eq!(run(sqlite.write(&result("local", 2, 4, b"4"))), Ok(WriteOutcome::Committed));
    assert_eq!(stored("select payload from events"), "4");
}
