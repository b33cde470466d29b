//! Tables that are altered while connections are open: each value is written as its column's current type, or not at
//! all.

use sink::{Batch, Record, Sink, SinkError, TableName, Write, WriteOutcome};
use sink_postgres::{Column, ColumnType, Partition, PayloadKind, TableLayout};

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{RECEIVED_AT, batch, batch_of, deliver, plain};
use testkit::postgres::PostgresServer;

const DAY: i64 = 24 * 3_600_000_000;

/// A fixture whose table has these columns in addition to the payload, filled from members of their names.
async fn typed(server: &PostgresServer, columns: &[(&str, ColumnType)]) -> Fixture {
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let column = |(name, kind): &(&str, ColumnType)| Column {
        name: TableName::new(name).unwrap(),
        pointer: format!("/{name}").parse().unwrap(),
        kind: Some(*kind),
    };
    let columns = columns.iter().map(column).collect();
    fixture.config.layout = TableLayout::Columns { columns, payload: Some(PayloadKind::Jsonb) };
    fixture
}

/// The SQL that alters the fixture's table.
fn alter(fixture: &Fixture, how: &str) -> String {
    format!("alter table {}.events {how}", fixture.schema)
}

/// Changes the types of columns, and discards their values.
fn retype(fixture: &Fixture, types: &[(&str, &str)]) -> String {
    let each = |(name, kind): &(&str, &str)| format!("alter {name} type {kind} using null");
    alter(fixture, &types.iter().map(each).collect::<Vec<_>>().join(", "))
}

/// These columns of the row that was written last.
fn last(server: &PostgresServer, fixture: &Fixture, columns: &str) -> String {
    server.psql(&format!("select {columns} from {}.events order by id desc limit 1", fixture.schema))
}

#[tokio::test]
async fn write_uses_changed_column_types() {
    let Some(server) = server() else { return };
    let before = [
        ("a", ColumnType::Double),
        ("b", ColumnType::Bigint),
        ("c", ColumnType::Integer),
        ("d", ColumnType::Real),
        ("e", ColumnType::Text),
        ("f", ColumnType::Numeric),
        ("g", ColumnType::Timestamptz),
    ];
    let fixture = typed(server, &before).await;
    let (sink, payload) = (fixture.sink(), r#"{"a": 7, "b": 7, "c": 7, "d": 7, "e": "7", "f": 7, "g": null}"#);
    deliver(&sink, &batch(0, 1, &[payload])).await;
    let after = [
        ("a", "bigint"),
        ("b", "double precision"),
        ("c", "real"),
        ("d", "integer"),
        ("e", "json"),
        ("f", "text"),
        ("g", "bigint"),
        ("payload", "text"),
    ];
    server.psql(&retype(&fixture, &after));
    assert_eq!(sink.write(&batch(0, 2, &[payload, payload])).await, Ok(WriteOutcome::Committed));
    assert_eq!(last(server, &fixture, "a, b, c, d, e, f, g"), "7|7|7|7|\"7\"|7|");
    assert_eq!(last(server, &fixture, "payload"), payload);
    assert_eq!(fixture.count(server).await, 3);
}

#[tokio::test]
async fn unfit_value_is_rejected_after_an_alteration() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Double), ("b", ColumnType::Bigint)]).await;
    let sink = fixture.sink();
    deliver(&sink, &batch(0, 1, &[r#"{"a": 1.5, "b": 1}"#])).await;
    server.psql(&retype(&fixture, &[("a", "bigint"), ("b", "timestamptz")]));
    let answer = sink.write(&batch(0, 2, &[r#"{"a": 2}"#, r#"{"a": 1.5}"#, r#"{"b": 1}"#])).await;
    let Ok(WriteOutcome::Rejected { refused }) = answer else { panic!("{answer:?}") };
    assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [1, 2]);
    assert!(refused[0].reason.contains("column a is bigint and can't hold 1.5"), "{refused:?}");
    assert!(refused[1].reason.contains("column b is timestamptz"), "{refused:?}");
    assert_eq!(fixture.count(server).await, 1);
}

#[tokio::test]
async fn value_is_stored_when_its_column_now_fits() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Integer)]).await;
    let sink = fixture.sink();
    deliver(&sink, &batch(0, 1, &[r#"{"a": 7}"#])).await;
    server.psql(&alter(&fixture, "alter a type text"));
    assert_eq!(sink.write(&batch(0, 2, &[r#"{"a": 8}"#, r#"{"a": "late"}"#])).await, Ok(WriteOutcome::Committed));
    assert_eq!(last(server, &fixture, "a"), "late");
}

#[tokio::test]
async fn unsupported_column_type_stops_all_writes() {
    let Some(server) = server() else { return };
    for to in ["bytea", "timestamp", "date", "xml"] {
        let fixture = typed(server, &[("a", ColumnType::Text), ("b", ColumnType::Double)]).await;
        let sink = fixture.sink();
        let payload = r#"{"a": "7", "b": 7}"#;
        deliver(&sink, &batch(0, 1, &[payload])).await;
        let (name, other) = if to == "timestamp" { ("b", "double precision") } else { ("a", "text") };
        server.psql(&retype(&fixture, &[(name, to)]));
        let answer = sink.write(&batch(0, 2, &[payload])).await;
        let Err(SinkError::Misconfigured(reason) | SinkError::Unavailable(reason)) = answer else {
            panic!("{to}: {answer:?}")
        };
        let Err(SinkError::Misconfigured(again)) = sink.write(&batch(0, 2, &[payload])).await else { panic!("{to}") };
        assert!(again.contains(&format!("column {name} can't be {to}")), "{to}: {reason}, then {again}");
        assert_eq!(fixture.count(server).await, 1, "{to}");
        server.psql(&retype(&fixture, &[(name, other)]));
        deliver(&sink, &batch(0, 2, &[payload])).await;
        assert_eq!(last(server, &fixture, "a, b"), "7|7");
    }
}

/// Makes a batch wait for the table's lock, alters the table, and releases the lock. Returns the batch's outcome.
async fn alter_during_write(
    fixture: &Fixture,
    sink: &Sink,
    batch: Batch,
    how: &str,
) -> Result<WriteOutcome, SinkError> {
    let server = server().unwrap();
    let (other, watcher) = (client(server).await, client(server).await);
    let lock = format!("begin; lock table {}.events in access exclusive mode", fixture.schema);
    other.batch_execute(&lock).await.unwrap();
    let write = {
        let sink = sink.clone();
        tokio::spawn(async move { sink.write(&batch).await })
    };
    let waiting = format!(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%\"{}\".\"events\"%'",
        fixture.schema
    );
    while watcher.query_one(&waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!write.is_finished(), "it wrote though the table is locked");
    }
    other.batch_execute(&format!("{how}; commit")).await.unwrap();
    write.await.unwrap()
}

#[tokio::test]
async fn waiting_batch_is_encoded_again_after_an_alteration() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Double), ("b", ColumnType::Integer)]).await;
    let (sink, payload) = (fixture.sink(), r#"{"a": 7, "b": 7}"#);
    deliver(&sink, &batch(0, 1, &[payload])).await;
    let how = retype(&fixture, &[("a", "bigint"), ("b", "real")]);
    let answer = alter_during_write(&fixture, &sink, batch(0, 2, &vec![payload; 3_000]), &how).await;
    assert_eq!(answer, Ok(WriteOutcome::Committed));
    assert_eq!(last(server, &fixture, "a, b"), "7|7");
    let same = format!("select count(*) from {}.events where a = 7 and b = 7", fixture.schema);
    assert_eq!(server.psql(&same), "3000");
}

#[tokio::test]
async fn waiting_result_is_not_rounded_after_an_alteration() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Numeric)]).await;
    let sink = fixture.sink();
    let result = |sequence, payload: &str| {
        batch_of(0, sequence, &[payload], |record| Record { write: Write::Upsert(1), ..record })
    };
    deliver(&sink, &result(1, r#"{"a": 1.5}"#)).await;
    let how = retype(&fixture, &[("a", "integer")]);
    let answer = alter_during_write(&fixture, &sink, result(2, r#"{"a": 1.5}"#), &how).await;
    let Ok(WriteOutcome::Rejected { refused }) = answer else { panic!("{answer:?}: {}", last(server, &fixture, "a")) };
    assert!(refused[0].reason.contains("column a is integer and can't hold 1.5"), "{refused:?}");
}

#[tokio::test]
async fn dropped_and_added_column_gets_its_new_type() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Bigint), ("b", ColumnType::Text)]).await;
    let (sink, payload) = (fixture.sink(), r#"{"a": 7, "b": "7"}"#);
    deliver(&sink, &batch(0, 1, &[payload])).await;
    server.psql(&alter(&fixture, "drop a, add a double precision, drop b, add b json"));
    assert_eq!(sink.write(&batch(0, 2, &[payload])).await, Ok(WriteOutcome::Committed));
    assert_eq!(last(server, &fixture, "a, b"), "7|\"7\"");
}

#[tokio::test]
async fn recreated_table_is_checked_completely() {
    let Some(server) = server() else { return };
    let fixture = typed(server, &[("a", ColumnType::Bigint)]).await;
    let (sink, payload, schema) = (fixture.sink(), r#"{"a": 7}"#, &fixture.schema);
    deliver(&sink, &batch(0, 1, &[payload])).await;
    let table = |key: &str, kind: &str| {
        format!(
            "drop table {schema}.events; create table {schema}.events \
             (id uuid {key}, received_at timestamptz, a {kind}, payload jsonb)"
        )
    };
    server.psql(&table("primary key", "double precision"));
    assert_eq!(sink.write(&batch(0, 2, &[payload])).await, Ok(WriteOutcome::Committed));
    assert_eq!(last(server, &fixture, "a"), "7");
    server.psql(&table("not null", "double precision"));
    let answer = sink.write(&batch(0, 3, &[payload])).await;
    let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("its id isn't unique"), "{reason}");
    assert_eq!(fixture.count(server).await, 0);
}

#[tokio::test]
async fn new_table_earlier_in_search_path_is_used() {
    let Some(server) = server() else { return };
    let mut fixture = typed(server, &[("a", ColumnType::Bigint)]).await;
    let schema = fixture.schema.clone();
    server.psql(&format!("create schema first_{schema}; create schema {schema}_last"));
    let path = format!("{}&options=-c%20search_path%3Dfirst_{schema},{schema}_last", fixture.url);
    (fixture.config.server, fixture.config.table) = (path.parse().unwrap(), "events".parse().unwrap());
    server.psql(&format!(
        "create table {schema}_last.events (id uuid primary key, received_at timestamptz, a bigint, payload jsonb)"
    ));
    let sink = fixture.sink();
    deliver(&sink, &batch(0, 1, &[r#"{"a": 7}"#])).await;
    server.psql(&format!(
        "create table first_{schema}.events (id uuid primary key, received_at timestamptz, a double precision, payload jsonb)"
    ));
    deliver(&sink, &batch(0, 2, &[r#"{"a": 7}"#])).await;
    assert_eq!(server.psql(&format!("select a from first_{schema}.events")), "7");
    assert_eq!(server.psql(&format!("select a from {schema}_last.events")), "7");
}

#[tokio::test]
async fn rows_moved_to_a_partition_keep_added_columns() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &plain(0, 1, 1)).await;
    server.psql(&format!(
        "alter table {schema}.events add note text; insert into {schema}.events (id, event_time, note) values \
         ('00000000-0000-0000-0000-000000000001', '2025-10-08T12:00:00Z', 'kept')"
    ));
    let of_the_day =
        |sequence| batch_of(0, sequence, &["1"], |record| Record { event_time: Some(RECEIVED_AT - DAY), ..record });
    deliver(&sink, &of_the_day(2)).await;
    assert_eq!(server.psql(&format!("select note from {schema}.events_20251008 where note is not null")), "kept");
}

#[tokio::test]
async fn rows_of_a_detached_default_partition_stay() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &plain(0, 1, 1)).await;
    let row = "(id, event_time) values ('00000000-0000-0000-0000-00000000000N', '2025-10-08T12:00:00Z')";
    server.psql(&format!(
        "insert into {schema}.events {}; alter table {schema}.events detach partition {schema}.events_default; \
         create table {schema}.rest partition of {schema}.events default; insert into {schema}.events {}",
        row.replace('N', "1"),
        row.replace('N', "2")
    ));
    let batch = batch_of(0, 2, &["1"], |record| Record { event_time: Some(RECEIVED_AT - DAY), ..record });
    deliver(&sink, &batch).await;
    assert_eq!(server.psql(&format!("select count(*) from {schema}.events_default")), "1");
    assert_eq!(server.psql(&format!("select count(*) from {schema}.events_20251008")), "2");
    assert_eq!(server.psql(&format!("select count(*) from {schema}.rest")), "0");
}
