//! A standby takes over from a server that was killed: nothing is lost or doubled, whether it had everything or not.

use super::{post, start_on};
use crate::support::{Folder, Server, forebay, wait_until};
use testkit::postgres::PostgresServer;

/// A server that can be replicated; slow disks are irrelevant for these tests.
fn primary() -> Option<PostgresServer> {
    PostgresServer::start_with(&["shared_buffers=32MB", "wal_level=replica", "max_wal_senders=4", "hot_standby=on"])
}

/// Delivers to whichever of both takes writes.
fn start(folder: &Folder, one: &PostgresServer, other: &PostgresServer) -> Server {
    let hosts = format!("postgres://postgres@{},{}/postgres", one.host(), other.host());
    start_on(folder, &hosts, "timeout = \"5s\"\n")
}

fn follows(primary: &PostgresServer, state: &str) -> bool {
    wait_until(|| primary.psql("select sync_state from pg_stat_replication where state = 'streaming'") == state)
}

/// The numbers of the events that are stored, as they are sorted.
fn numbers(postgres: &PostgresServer) -> Vec<usize> {
    let rows = postgres.psql("select payload::json->>'number' from events order by (payload::json->>'number')::int");
    rows.lines().map(|row| row.parse().unwrap()).collect()
}

#[test]
fn synchronous_standby_has_stored_events_after_failover() {
    let Some(primary) = primary() else { return };
    let standby = primary.standby();
    primary.psql("alter system set synchronous_standby_names = '*'; select pg_reload_conf()");
    assert!(follows(&primary, "sync"), "{}", standby.log());
    let folder = Folder::new();
    let server = start(&folder, &primary, &standby);
    let mut number = 0;
    while number < 300 {
        assert_eq!(post(&server, number), 200);
        number += 1;
    }
    // Killed while batches are in flight, after some that were stored.
    server.wait("forebay_events_stored_total{", |stored| stored > 0);
    let stored = server.metric("forebay_events_stored_total{");
    primary.kill();
    for _ in 0..100 {
        assert_eq!(post(&server, number), 200, "events are accepted while the store is down");
        number += 1;
    }
    assert!(numbers(&standby).len() as u64 >= stored, "what was stored was with the standby before");
    standby.promote();
    server.wait_delivered();
    assert_eq!(numbers(&standby), (0..number).collect::<Vec<_>>());
    assert_eq!(server.metric("forebay_events_stored_total{"), number as u64);
}

#[test]
fn events_missing_on_promoted_standby_are_resent() {
    let Some(primary) = primary() else { return };
    let standby = primary.standby();
    assert!(follows(&primary, "async"), "{}", standby.log());
    let folder = Folder::new();
    let server = start(&folder, &primary, &standby);
    (0..50).for_each(|number| assert_eq!(post(&server, number), 200));
    server.wait_delivered();
    assert!(wait_until(
        || standby.psql("select to_regclass('events') is not null") == "t" && numbers(&standby).len() == 50
    ));
    // From here on it receives nothing.
    standby.kill();
    (50..120).for_each(|number| assert_eq!(post(&server, number), 200));
    server.wait_delivered();
    assert_eq!(numbers(&primary).len(), 120);
    primary.kill();
    standby.run();
    standby.promote();
    // No event is posted: the lane checks on its own schedule.
    assert!(wait_until(|| numbers(&standby).len() == 120), "{}", std::fs::read_to_string(folder.path("log")).unwrap());
    assert_eq!(post(&server, 120), 200);
    server.wait_delivered();
    assert_eq!(numbers(&standby), (0..=120).collect::<Vec<_>>());
    assert_eq!(server.metric("forebay_events_stored_total{"), 121);
}

/// Replays all dead letters of the running server.
fn replay(server: &Server) -> String {
    let admin = server.admin.to_string();
    let output = forebay().args(["dead", "replay", "--admin", &admin]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn replay_missing_on_standby_is_stored_again() {
    let Some(primary) = primary() else { return };
    primary.psql(
        "create table events (id uuid primary key, type text, source text, received_at timestamptz, payload text
         constraint small check (payload not like '%13%'))",
    );
    let standby = primary.standby();
    assert!(follows(&primary, "async"), "{}", standby.log());
    let folder = Folder::new();
    let server = start(&folder, &primary, &standby);
    (0..20).for_each(|number| assert_eq!(post(&server, number), 200));
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    primary.psql("alter table events drop constraint small");
    // It has everything but the replay.
    let constraints = "select count(*) from pg_constraint where conname = 'small'";
    assert!(wait_until(|| standby.psql(constraints) == "0" && numbers(&standby).len() == 19));
    standby.kill();
    assert!(replay(&server).starts_with("warehouse: 1 stored"));
    assert_eq!(numbers(&primary).len(), 20);
    primary.kill();
    standby.run();
    standby.promote();
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| numbers(&standby).len() == 20), "{}", log());
    assert!(wait_until(|| log().contains("sink=warehouse lost=1 stored=")), "{}", log());
    assert_eq!(server.metric("forebay_events_stored_total{"), 20);
    assert_eq!(server.metric("forebay_events_dead_total{"), 0);
    let lettered = server.metric("forebay_events_dead_lettered_total{");
    assert_eq!(lettered, 2, "the standby had lost the replay, so it was a dead letter again");
}
