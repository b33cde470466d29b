//! Statements that a reading connection keeps: tables that are altered or replaced in the meantime are read as they are now.

use std::time::{Duration, Instant};

use event::read::{Filter, Lookup, Query, ReadError, StoredEvent, Wanted};
use sink::Sink;
use sink_postgres::PayloadKind;

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{batch, deliver, id, plain};

fn all() -> Query {
    Query { wanted: Wanted::Stored(Filter::default()), after: None, limit: 9, bytes_max: 1 << 20, only_type: None }
}

async fn found(sink: &Sink) -> Result<Vec<StoredEvent>, ReadError> {
    let lookup = Lookup { ids: vec![id(0, 1)], bytes_max: 1 << 20, only_type: None };
    Ok(sink.get(lookup).await?.events)
}

/// The payload of the first event by each way of reading.
async fn payloads(sink: &Sink) -> [String; 3] {
    let of_key = Query { wanted: Wanted::Ids { first: id(0, 1), last: id(0, 1) }, ..all() };
    let events =
        [found(sink).await.unwrap(), sink.read(of_key).await.unwrap().events, sink.read(all()).await.unwrap().events];
    events.map(|events| String::from_utf8(events[0].payload.text().to_vec()).unwrap())
}

#[tokio::test]
async fn altered_and_replaced_tables_are_read_as_they_are() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Text).await;
    let (sink, table) = (fixture.sink(), format!("{}.events", fixture.schema));
    deliver(&sink, &batch(0, 1, &["{\"a\":1,\"a\":2}"])).await;
    assert_eq!(payloads(&sink).await, ["{\"a\":1,\"a\":2}"; 3]);
    let admin = client(server).await;
    let other = format!(
        "create table {table}_b (like {table} including all); \
         insert into {table}_b (id, type, source, received_at, payload) select id, type, source, received_at, '7' from {table}; "
    );
    for (alteration, expected) in [
        (format!("alter table {table} alter payload type jsonb using payload::jsonb"), "{\"a\": 2}"),
        (format!("alter table {table} alter payload type varchar using payload::text"), "{\"a\": 2}"),
        (format!("alter table {table} add column further text, alter type type varchar(9)"), "{\"a\": 2}"),
        (format!("{other} alter table {table} rename to events_a; alter table {table}_b rename to events"), "7"),
        (format!("drop table {table}; alter table {table}_a rename to events"), "{\"a\": 2}"),
        (format!("alter table {table} drop column stored_in, drop column stored_number"), "{\"a\": 2}"),
    ] {
        admin.batch_execute(&format!("begin; {alteration}; commit")).await.unwrap();
        assert_eq!(payloads(&sink).await, [expected; 3], "{alteration}");
    }
}

#[tokio::test]
async fn bookmark_of_a_replaced_table_is_recognised() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let (sink, table) = (fixture.sink(), format!("{}.events", fixture.schema));
    deliver(&sink, &plain(0, 1, 3)).await;
    let after = sink.read(Query { limit: 1, ..all() }).await.unwrap().next;
    assert!(after.is_some());
    let replace = format!(
        "alter table {table} rename to before; create table {table} (like {}.before including all)",
        fixture.schema
    );
    server.psql(&replace);
    assert_eq!(sink.read(Query { after, ..all() }).await, Err(ReadError::Bookmark));
}

#[tokio::test]
async fn missing_table_is_read_again_when_it_is_back() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &plain(0, 1, 1)).await;
    assert_eq!(found(&sink).await.unwrap().len(), 1);
    server.psql(&format!("alter table {schema}.events rename to away"));
    let Err(ReadError::Unavailable(reason)) = found(&sink).await else { panic!("there is no table") };
    assert!(reason.contains("42P01"), "{reason}");
    server.psql(&format!("alter table {schema}.away rename to events"));
    assert_eq!(found(&sink).await.unwrap().len(), 1);
}

#[tokio::test]
async fn statement_for_a_small_table_uses_the_index_when_it_is_large() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &plain(0, 1, 1)).await;
    server.psql(&format!("analyze {schema}.events"));
    let watcher = client(server).await;
    let sql = format!(
        "select seq_scan, idx_scan from pg_stat_user_tables where schemaname = '{schema}' and relname = 'events'"
    );
    let scans = async || {
        let row = watcher.query_one(&sql, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let before = scans().await;
    for _ in 0..20 {
        assert_eq!(found(&sink).await.unwrap().len(), 1);
    }
    // The server counts a connection's scans at its end.
    sink.close().await.unwrap();
    let began = Instant::now();
    let mut after = before;
    while after.0 + after.1 < before.0 + before.1 + 20 {
        assert!(began.elapsed() < Duration::from_mins(1), "{after:?} after {before:?}");
        after = scans().await;
    }
    assert!(after.1 >= before.1 + 20, "{after:?} after {before:?}");
}
