//! How many connections there are, counted by the server, for how long each is used, and what ends a statement that takes too long.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use event::read::{Filter, Lookup, Query, ReadError, Wanted};
use sink::{SinkError, WriteOutcome};
use sink_postgres::{PayloadKind, PoolLimits};

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{deliver, id, plain};
use testkit::postgres::PostgresServer;

/// The time a slow machine may take to reach an expected state.
const PATIENCE: Duration = Duration::from_mins(1);

/// A fixture whose connections can be distinguished from those of other tests.
async fn named(server: &PostgresServer, connections: PoolLimits) -> Fixture {
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let url = format!("{}&application_name={}", fixture.url, fixture.schema);
    fixture.config.server = url.parse().unwrap();
    fixture.config.connections = connections;
    fixture
}

fn at_most(count: usize) -> PoolLimits {
    PoolLimits { max: NonZeroUsize::new(count), ..PoolLimits::default() }
}

/// The count of the fixture's sessions on the server for which the condition `what` holds.
async fn count(watcher: &tokio_postgres::Client, fixture: &Fixture, what: &str) -> i64 {
    let sql = format!("select count(*) from pg_stat_activity where application_name = '{}' and {what}", fixture.schema);
    watcher.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Waits until the condition holds for `wanted` of the fixture's sessions.
async fn wait_for(watcher: &tokio_postgres::Client, fixture: &Fixture, what: &str, wanted: i64) {
    let began = Instant::now();
    while count(watcher, fixture, what).await != wanted {
        assert!(began.elapsed() < PATIENCE, "never {wanted} sessions with {what}");
    }
}

#[tokio::test]
async fn lanes_share_connections_up_to_the_limit() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    for (connections, most) in [(at_most(2), 2), (at_most(1), 1), (PoolLimits::default(), 5)] {
        let fixture = named(server, connections).await;
        let sink = fixture.sink();
        sink.connect().await.unwrap();
        let lock = client(server).await;
        let held = format!("begin; lock table {}.forebay_cursors in exclusive mode", fixture.schema);
        lock.batch_execute(&held).await.unwrap();
        let mut writes = Vec::new();
        for shard in 0..5 {
            let sink = sink.clone();
            writes.push(tokio::spawn(async move { sink.write(&plain(shard, 1, 10)).await }));
        }
        wait_for(&watcher, &fixture, "wait_event_type = 'Lock'", most).await;
        assert_eq!(count(&watcher, &fixture, "true").await, most, "and the others wait for a connection");
        lock.batch_execute("rollback").await.unwrap();
        for write in writes {
            assert_eq!(write.await.unwrap(), Ok(WriteOutcome::Committed));
        }
        assert_eq!(count(&watcher, &fixture, "true").await, most, "those that are free are kept");
        sink.close().await.unwrap();
        wait_for(&watcher, &fixture, "true", 0).await;
    }
}

#[tokio::test]
async fn call_waiting_for_a_connection_ends_on_close() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let fixture = named(server, at_most(1)).await;
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    let lock = client(server).await;
    let held = format!("begin; lock table {}.forebay_cursors in exclusive mode", fixture.schema);
    lock.batch_execute(&held).await.unwrap();
    let write = |shard| {
        let sink = sink.clone();
        tokio::spawn(async move { sink.write(&plain(shard, 1, 1)).await })
    };
    let writes = [write(0), write(1)];
    wait_for(&watcher, &fixture, "wait_event_type = 'Lock'", 1).await;
    sink.close().await.unwrap();
    for write in writes {
        assert!(matches!(write.await.unwrap(), Err(SinkError::Unavailable(_))));
    }
    lock.batch_execute("rollback").await.unwrap();
    deliver(&sink, &plain(0, 1, 1)).await;
}

#[tokio::test]
async fn read_waiting_for_the_server_ends_on_close() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let fixture = named(server, PoolLimits::default()).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 1)).await;
    let lock = client(server).await;
    lock.batch_execute(&format!("begin; lock table {}.events in access exclusive mode", fixture.schema)).await.unwrap();
    let query =
        Query { wanted: Wanted::Stored(Filter::default()), after: None, limit: 2, bytes_max: 1 << 20, only_type: None };
    let read = {
        let (sink, query) = (sink.clone(), query.clone());
        tokio::spawn(async move { sink.read(query).await })
    };
    wait_for(&watcher, &fixture, "wait_event_type = 'Lock'", 1).await;
    sink.close().await.unwrap();
    let Err(ReadError::Unavailable(reason)) = read.await.unwrap() else { panic!("the table is locked") };
    assert!(reason.contains("closed"), "{reason}");
    lock.batch_execute("rollback").await.unwrap();
    assert_eq!(sink.read(query).await.unwrap().events.len(), 1, "and a later read succeeds");
}

#[tokio::test]
async fn readers_share_connections_up_to_the_limit_and_close_idle_ones() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let readers = NonZeroUsize::new(3).unwrap();
    let fixture = named(server, PoolLimits { readers, ..PoolLimits::default() }).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 9)).await;
    let lock = client(server).await;
    lock.batch_execute(&format!("begin; lock table {}.events in access exclusive mode", fixture.schema)).await.unwrap();
    let mut reads = Vec::new();
    for limit in 1..=9 {
        let wanted = Wanted::Stored(Filter::default());
        let query = Query { wanted, after: None, limit, bytes_max: 1 << 20, only_type: None };
        let sink = sink.clone();
        reads.push(tokio::spawn(async move { sink.read(query).await.map(|page| page.events.len()) }));
    }
    wait_for(&watcher, &fixture, "wait_event_type = 'Lock'", 3).await;
    assert_eq!(count(&watcher, &fixture, "true").await, 4, "three that read, and one that wrote");
    lock.batch_execute("rollback").await.unwrap();
    for (read, limit) in reads.into_iter().zip(1..) {
        assert_eq!(read.await.unwrap(), Ok(limit));
    }
    wait_for(&watcher, &fixture, "true", 1).await;
}

#[tokio::test]
async fn slow_read_is_cancelled_by_the_server() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let mut fixture = named(server, PoolLimits::default()).await;
    fixture.config.timeout = Duration::from_secs(1);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 1)).await;
    let lock = client(server).await;
    lock.batch_execute(&format!("begin; lock table {}.events in access exclusive mode", fixture.schema)).await.unwrap();
    let lookup = Lookup { ids: vec![id(0, 1)], bytes_max: 1, only_type: None };
    let Err(ReadError::Unavailable(reason)) = sink.get(lookup.clone()).await else { panic!("the table is locked") };
    assert!(reason.contains("57014") || reason.contains("55P03"), "{reason}");
    wait_for(&watcher, &fixture, "state <> 'idle'", 0).await;
    lock.batch_execute("rollback").await.unwrap();
    assert_eq!(sink.get(lookup).await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn server_closes_an_idle_connection() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let idle = PoolLimits { idle: Duration::from_secs(1), ..PoolLimits::default() };
    let fixture = named(server, idle).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 1)).await;
    assert_eq!(count(&watcher, &fixture, "true").await, 1);
    wait_for(&watcher, &fixture, "true", 0).await;
    assert_eq!(
        sink.write(&plain(0, 2, 1)).await,
        Ok(WriteOutcome::Committed),
        "and the next call gets another one immediately"
    );
    assert_eq!(fixture.count(server).await, 2);
}

#[tokio::test]
async fn connection_is_replaced_after_its_lifetime() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let short = PoolLimits { lifetime: Duration::from_secs(1), ..PoolLimits::default() };
    for (connections, is_another) in [(short, true), (PoolLimits::default(), false)] {
        let fixture = named(server, connections).await;
        let sink = fixture.sink();
        let sql = format!("select pid from pg_stat_activity where application_name = '{}'", fixture.schema);
        deliver(&sink, &plain(0, 1, 1)).await;
        let session = async || watcher.query(&sql, &[]).await.unwrap().last().map(|row| row.get::<_, i32>(0));
        let (first, began) = (session().await, Instant::now());
        let mut next = 2;
        while began.elapsed() < Duration::from_millis(1_500) || (is_another && session().await == first) {
            assert!(began.elapsed() < PATIENCE, "it is the same connection still");
            assert_eq!(sink.write(&plain(0, next, 1)).await, Ok(WriteOutcome::Committed));
            next += 1;
        }
        assert_eq!(session().await != first, is_another);
        assert_eq!(fixture.count(server).await, next - 1);
    }
}

#[tokio::test]
async fn slow_statement_is_cancelled_without_dead_letters() {
    let Some(server) = server() else { return };
    let watcher = client(server).await;
    let mut fixture = named(server, PoolLimits::default()).await;
    fixture.config.timeout = Duration::from_secs(1);
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    sink.connect().await.unwrap();
    let slow = format!(
        "create function {schema}.slow() returns trigger language plpgsql as $$ begin
         perform pg_sleep(600); return new; end $$;
         create trigger slow before insert on {schema}.events for each row execute function {schema}.slow()"
    );
    client(server).await.batch_execute(&slow).await.unwrap();
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 1, 2)).await else { panic!("it takes ten minutes") };
    assert!(reason.contains("57014"), "{reason}");
    wait_for(&watcher, &fixture, "state <> 'idle'", 0).await;
    let lock = client(server).await;
    lock.batch_execute(&format!("begin; lock table {schema}.forebay_cursors in exclusive mode")).await.unwrap();
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 1, 2)).await else { panic!("it is locked") };
    assert!(reason.contains("55P03") || reason.contains("57014"), "{reason}");
    lock.batch_execute("rollback").await.unwrap();
    client(server).await.batch_execute(&format!("drop trigger slow on {schema}.events")).await.unwrap();
    deliver(&sink, &plain(0, 1, 2)).await;
    assert_eq!(fixture.count(server).await, 2);
}
