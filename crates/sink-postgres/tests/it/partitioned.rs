//! Tables that are partitioned by day: which partitions there are, which calls wait, and how duplicates are found.

use sink::{Batch, Cursor, Record, SinkError, Write, WriteOutcome};
use sink_postgres::{Partition, PayloadKind, RowConflictPolicy};

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{RECEIVED_AT, batch_of, deliver, id, lane, plain};
use testkit::postgres::PostgresServer;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// A schema whose table is to be partitioned.
async fn partitioned(server: &PostgresServer) -> Fixture {
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    fixture
}

/// Events whose own times are this far from the times they were received at.
fn timed(shard: u16, first: u64, after: &[i64]) -> Batch {
    batch_of(shard, first, &vec!["{}"; after.len()], |record| {
        let after = after[usize::try_from(record.sequence - first).unwrap()];
        Record { event_time: Some(RECEIVED_AT + record.sequence.cast_signed() + after), ..record }
    })
}

/// The rows of each partition, by its name.
fn parts(server: &PostgresServer, fixture: &Fixture) -> String {
    let sql = format!(
        "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = '{}.events'::regclass order by 1",
        fixture.schema
    );
    let names = server.psql(&sql);
    let count = |name: &str| server.psql(&format!("select count(*) from {}.{name}", fixture.schema));
    names.lines().map(|name| format!("{}={} ", name.trim_start_matches("events_"), count(name))).collect()
}

#[tokio::test]
async fn each_near_day_gets_a_partition_ahead() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 5)).await;
    assert_eq!(parts(server, &fixture), "20251009=5 20251010=0 default=0 ");
    let far = [-DAY, DAY, -366 * DAY, -367 * DAY, 2 * DAY, 3_000 * DAY, -2 * DAY];
    deliver(&sink, &timed(0, 6, &far)).await;
    assert_eq!(
        parts(server, &fixture),
        "20241008=1 20251007=1 20251008=1 20251009=5 20251010=1 default=3 ",
        "a day that is too far away has no partition"
    );
    assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(12)));
    assert_eq!(fixture.count(server).await, 12);
}

#[tokio::test]
async fn concurrent_connections_create_the_same_partitions() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let days: Vec<i64> = (0..10).map(|day| -day * DAY).collect();
    let mut writes = Vec::new();
    for shard in 0..6 {
        let (sink, batch) = (fixture.sink(), timed(shard, 1, &days));
        writes.push(tokio::spawn(async move { deliver(&sink, &batch).await }));
    }
    for write in writes {
        write.await.unwrap();
    }
    assert_eq!(fixture.count(server).await, 60);
    assert_eq!(server.psql(&format!("select count(*) from {}.events_default", fixture.schema)), "0");
    assert_eq!(
        server
            .psql(&format!("select count(*) from pg_inherits where inhparent = '{}.events'::regclass", fixture.schema)),
        "12"
    );
}

#[tokio::test]
async fn duplicate_with_equal_time_is_stored_once() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let again = |shard, first, payload: &str, at: i64| {
        batch_of(shard, first, &[payload], |record| Record {
            id: id(0, 1),
            event_time: Some(RECEIVED_AT + at),
            ..record
        })
    };
    let sink = fixture.sink();
    assert_eq!(sink.write(&again(0, 1, "1", 0)).await, Ok(WriteOutcome::Committed));
    assert_eq!(sink.write(&again(1, 1, "1", 0)).await, Ok(WriteOutcome::Committed));
    let Ok(WriteOutcome::Rejected { refused }) = sink.write(&again(2, 1, "2", 0)).await else {
        panic!("it is another one")
    };
    assert!(refused[0].reason.contains("its id exists"), "{refused:?}");
    assert_eq!(fixture.count(server).await, 1);
    // This is the limit of deduplication: the key of a partition includes the time.
    assert_eq!(sink.write(&again(3, 1, "2", 2 * HOUR)).await, Ok(WriteOutcome::Committed));
    assert_eq!(fixture.count(server).await, 2);
    // It is compared only with the row that has the same time.
    assert_eq!(sink.write(&again(4, 1, "1", 0)).await, Ok(WriteOutcome::Committed));
    assert_eq!(fixture.count(server).await, 2);
}

#[tokio::test]
async fn ignore_rule_drops_duplicates_with_equal_time() {
    let Some(server) = server() else { return };
    let mut fixture = partitioned(server).await;
    fixture.config.conflict = RowConflictPolicy::Ignore;
    let sink = fixture.sink();
    for (shard, payload) in (0..).zip(["1", "2"]) {
        let batch = batch_of(shard, 1, &[payload, payload], |record| Record {
            id: id(0, 1),
            event_time: Some(RECEIVED_AT),
            ..record
        });
        assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!(server.psql(&format!("select payload from {}.events", fixture.schema)), "1");
}

#[tokio::test]
async fn result_replaces_older_revision_in_any_partition() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let sink = fixture.sink();
    let results = |first, revision: u64, payload: &str, at: i64| {
        batch_of(0, first, &[payload], |record| Record {
            id: id(0, 1),
            event_time: Some(RECEIVED_AT + at),
            write: Write::Upsert(revision),
            ..record
        })
    };
    deliver(&sink, &results(1, 1, "1", 0)).await;
    deliver(&sink, &results(2, 2, "2", -DAY)).await;
    deliver(&sink, &results(3, 1, "3", 0)).await;
    assert_eq!(parts(server, &fixture), "20251008=1 20251009=0 20251010=0 default=0 ");
    assert_eq!(server.psql(&format!("select payload from {}.events", fixture.schema)), "2");
    server.psql(&format!("delete from {}.events", fixture.schema));
    deliver(&sink, &results(4, 4, "4", 0)).await;
    assert_eq!(server.psql(&format!("select payload from {}.events", fixture.schema)), "4", "and is written again");
}

/// Waits until a connection to the server waits for a lock.
async fn wait_for_a_lock(server: &PostgresServer, schema: &str, query: &str) {
    let watcher = client(server).await;
    let sql = format!(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '{query}%' and query like '%{schema}%'"
    );
    while watcher.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
}

#[tokio::test]
async fn long_report_does_not_block_batches() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 5)).await;
    let report = client(server).await;
    report.batch_execute(&format!("begin; select count(*) from {}.events", fixture.schema)).await.unwrap();
    deliver(&sink, &timed(0, 6, &[-DAY, -DAY])).await;
    assert_eq!(parts(server, &fixture), "20251009=5 20251010=0 default=2 ");
    deliver(&sink, &timed(0, 8, &[-DAY])).await;
    report.batch_execute("commit").await.unwrap();
    // A new connection doesn't know that it failed before.
    deliver(&fixture.sink(), &timed(0, 9, &[-DAY])).await;
    assert_eq!(parts(server, &fixture), "20251008=4 20251009=5 20251010=0 default=0 ");
    assert_eq!(fixture.rows(server).await.len(), 9);
}

#[tokio::test]
async fn partition_created_during_a_write_loses_no_row() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &plain(0, 1, 1)).await;
    let other = client(server).await;
    let lock = format!("begin; lock table {schema}.events_default in access exclusive mode");
    other.batch_execute(&lock).await.unwrap();
    let write = {
        let (sink, batch) = (
            sink.clone(),
            batch_of(0, 2, &["1"], |record| Record {
                event_time: Some(RECEIVED_AT - DAY),
                write: Write::Upsert(1),
                ..record
            }),
        );
        tokio::spawn(async move { sink.write(&batch).await })
    };
    // It couldn't make the partition, and is about to add the row.
    wait_for_a_lock(server, schema, "insert into").await;
    let make = format!(
        "create table {schema}.mine (like {schema}.events including constraints);
         alter table {schema}.events attach partition {schema}.mine
         for values from ('2025-10-01T00:00:00Z') to ('2025-10-09T00:00:00Z'); commit"
    );
    other.batch_execute(&make).await.unwrap();
    let Err(SinkError::Unavailable(reason)) = write.await.unwrap() else { panic!("the row was put somewhere") };
    assert!(reason.contains("partitions have changed"), "{reason}");
    deliver(&sink, &timed(0, 2, &[-DAY])).await;
    assert_eq!(server.psql(&format!("select count(*) from {schema}.mine")), "1");
}

#[tokio::test]
async fn late_events_of_a_dropped_partition_are_stored() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    let batch = timed(0, 1, &[-DAY, 0]);
    deliver(&sink, &batch).await;
    server.psql(&format!("drop table {schema}.events_20251008"));
    deliver(&sink, &batch).await;
    assert_eq!(fixture.count(server).await, 1, "the cursor is past it");
    deliver(&sink, &timed(0, 3, &[-DAY])).await;
    assert_eq!(fixture.count(server).await, 2);
    // A detached partition keeps its name.
    server.psql(&format!("alter table {schema}.events detach partition {schema}.events_20251009"));
    deliver(&fixture.sink(), &timed(0, 4, &[0, -DAY])).await;
    assert_eq!(parts(server, &fixture), "20251008=2 20251010=0 default=1 ");
}

#[tokio::test]
async fn partitions_created_by_users_are_used() {
    let Some(server) = server() else { return };
    let fixture = partitioned(server).await;
    let schema = &fixture.schema;
    server.psql(&format!(
        "create table {schema}.events (note text default 'none', id uuid, event_time timestamptz, type text, source text,
         received_at timestamptz, twice int generated always as (2) stored, payload jsonb check (payload <> '0'),
         primary key (event_time, id)) partition by range (event_time);
         create table {schema}.october partition of {schema}.events for values from ('2025-10-01') to ('2025-11-01');
         create table {schema}.rest partition of {schema}.events default"
    ));
    let sink = fixture.sink();
    let far = 60 * DAY;
    let batch = batch_of(0, 1, &["1", "2", "0"], |record| Record {
        event_time: Some(RECEIVED_AT + if record.sequence == 2 { -far } else { 0 }),
        ..record
    });
    let Ok(WriteOutcome::Rejected { refused }) = sink.write(&batch).await else { panic!("0 isn't accepted") };
    assert_eq!(refused[0].index, 2);
    deliver(&sink, &batch.without(&[2])).await;
    assert_eq!(parts(server, &fixture), "20250810=1 october=1 rest=0 ");
    assert_eq!(server.psql(&format!("select note, twice, payload from {schema}.events_20250810")), "none|2|2");
}

#[tokio::test]
async fn user_without_create_right_writes_to_existing_partitions() {
    let Some(server) = server() else { return };
    let mut fixture = partitioned(server).await;
    let schema = fixture.schema.clone();
    deliver(&fixture.sink(), &plain(0, 1, 1)).await;
    server.psql(&format!(
        "create role {schema} login; grant usage on schema {schema} to {schema};
         grant select, insert, update on all tables in schema {schema} to {schema}"
    ));
    fixture.config.server = fixture.url.replace("postgres@", &format!("{schema}@")).parse().unwrap();
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 2, 1)).await;
    let Err(SinkError::Misconfigured(reason)) = sink.write(&timed(0, 3, &[-DAY])).await else { panic!("it may not") };
    assert!(reason.contains("42501") && reason.contains("partition"), "{reason}");
}

#[tokio::test]
async fn wrongly_partitioned_table_is_rejected_with_advice() {
    let Some(server) = server() else { return };
    let columns = "id uuid, type text, source text, received_at timestamptz, payload jsonb";
    for (rest, word) in [
        ("(COLUMNS, event_time timestamptz, primary key (id))", "isn't partitioned"),
        ("(COLUMNS, event_time timestamptz, primary key (id)) partition by hash (id)", "by range of event_time alone"),
        ("(COLUMNS, event_time timestamptz, primary key (id, event_time)) partition by range (event_time)", "default"),
        (
            "(COLUMNS, event_time timestamptz) partition by range (event_time);
          create table SCHEMA.d partition of SCHEMA.events default",
            "aren't unique together",
        ),
        (
            "(COLUMNS, event_time timestamptz(0), primary key (id, event_time)) partition by range (event_time);
          create table SCHEMA.d partition of SCHEMA.events default",
            "column event_time can't be timestamp(0)",
        ),
        (
            "(COLUMNS, event_time timestamptz, primary key (id, event_time)) partition by range (event_time);
          create table SCHEMA.d partition of SCHEMA.events default;
          create table SCHEMA.p partition of SCHEMA.events for values from ('2025-01-01') to ('2025-02-01')
          partition by range (event_time)",
            "partitioned or foreign tables",
        ),
    ] {
        let fixture = partitioned(server).await;
        let rest = rest.replace("COLUMNS", columns).replace("SCHEMA", &fixture.schema);
        server.psql(&format!("create table {}.events {rest}", fixture.schema));
        let Err(SinkError::Misconfigured(reason)) = fixture.sink().connect().await else { panic!("{word}") };
        assert!(reason.contains(word), "{reason}");
    }
    let mut fixture = partitioned(server).await;
    fixture.sink().connect().await.unwrap();
    fixture.config.partition = Partition::None;
    let Err(SinkError::Misconfigured(reason)) = fixture.sink().connect().await else { panic!("it is partitioned") };
    assert!(reason.contains("partition = \"day\""), "{reason}");
}
