//! One sink over several databases: each event is in one of them, once; a database that is down delays only its events.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Folder, Server, exchange, wait_until};
use testkit::postgres::PostgresServer;

/// The sink's own database, and that of the tenants `acme` and 7.
fn configuration(common: &PostgresServer, shard: Option<&PostgresServer>) -> String {
    let mut text = format!(
        "[types.\"*\"]\nroutes = [\"warehouse\"]\n[gateway]\nshards = 3\n[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{}\"\n\
         max_connections = 2\nidle_timeout = \"1s\"\n",
        common.url()
    );
    if let Some(shard) = shard {
        text += &format!(
            "shard_by = \"/tenant\"\n[sinks.warehouse.shards.acme]\nurl = \"{}?application_name=shard\"\n\
             values = [\"acme\", \"7\"]\nmax_connections = 1\n",
            shard.url()
        );
    }
    text
}

fn start(folder: &Folder, text: &str) -> Server {
    let path = folder.write("forebay.toml", text);
    Server::start_configured(&folder.data(), Path::new(&path), &folder.path("log"))
}

/// Posts events of all tenants alternately, with numbers from `first` on; one event has no tenant.
fn post(server: &Server, first: usize, count: usize) {
    let tenants = ["\"acme\"", "\"globex\"", "7", "null"];
    for number in first..first + count {
        let body = format!("{{\"number\": {number}, \"tenant\": {}}}", tenants[number % tenants.len()]);
        assert_eq!(server.post("/ingest/event/access", &body).0, 200, "events are accepted while the store is down");
    }
}

/// The numbers that are stored, each once.
fn numbers(postgres: &PostgresServer) -> BTreeSet<usize> {
    if postgres.psql("select to_regclass('events') is not null") != "t" {
        return BTreeSet::new();
    }
    let rows = postgres.psql("select payload->>'number' from events");
    let numbers: BTreeSet<usize> = rows.lines().map(|row| row.parse().unwrap()).collect();
    assert_eq!(numbers.len(), rows.lines().count(), "each once");
    numbers
}

fn of_shard(numbers: std::ops::Range<usize>) -> BTreeSet<usize> {
    numbers.filter(|number| number % 2 == 0).collect()
}

fn of_common(numbers: std::ops::Range<usize>) -> BTreeSet<usize> {
    numbers.filter(|number| number % 2 == 1).collect()
}

#[test]
fn unreachable_database_delays_only_its_events() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&folder, &configuration(&common, Some(&shard)));
    post(&server, 0, 100);
    server.wait_delivered();
    assert_eq!((numbers(&common), numbers(&shard)), (of_common(0..100), of_shard(0..100)));
    shard.kill();
    post(&server, 100, 100);
    assert!(wait_until(|| numbers(&common) == of_common(0..200)), "the common database doesn't wait");
    drop(server);
    let server = start(&folder, &configuration(&common, Some(&shard)));
    post(&server, 200, 40);
    assert!(wait_until(|| numbers(&common) == of_common(0..240)));
    shard.run();
    server.wait_delivered();
    assert_eq!((numbers(&common), numbers(&shard)), (of_common(0..240), of_shard(0..240)));
    assert_eq!(server.metric("forebay_events_stored_total{"), 240);
    let in_use = "select count(*) from pg_stat_activity where application_name = 'shard'";
    assert!(shard.psql(in_use).parse::<u32>().unwrap() <= 1);
    assert_eq!(server.metric("forebay_events_dead_total{"), 0);
}

#[test]
fn moved_tenant_has_events_in_one_database() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::shared()) else { return };
    let folder = Folder::new();
    let server = start(&folder, &configuration(&common, None));
    post(&server, 0, 60);
    folder.write("forebay.toml", configuration(&common, Some(&shard)));
    let admin = server.admin;
    let (status, body) =
        exchange(admin, &format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"));
    assert_eq!(status, 200, "{body}");
    post(&server, 60, 60);
    server.wait_delivered();
    assert_eq!(numbers(&shard), of_shard(60..120));
    let expected: BTreeSet<usize> = (0..60).chain(of_common(60..120)).collect();
    assert_eq!(numbers(&common), expected);
}

#[test]
fn stored_ack_means_that_the_row_is_in_its_database() {
    let (Some(common), Some(shard)) = (PostgresServer::shared(), PostgresServer::start()) else { return };
    let folder = Folder::new();
    let server = start(&folder, &configuration(&common, Some(&shard)));
    let stored = |number: usize, tenant: &str| {
        let body = format!("{{\"number\": {number}, \"tenant\": {tenant}}}");
        let length = body.len();
        let head = format!("POST /ingest/event/access HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", server.intake);
        exchange(server.intake, &format!("{head}Forebay-Ack: stored\r\nContent-Length: {length}\r\n\r\n{body}")).0
    };
    for number in 0..24 {
        let (tenant, database) = if number % 3 == 0 { ("7", &shard) } else { ("\"globex\"", &common) };
        assert_eq!(stored(number, tenant), 200);
        assert!(numbers(database).contains(&number), "{number}");
    }
    shard.kill();
    let events_before = numbers(&common).len();
    assert_eq!(stored(24, "7"), 202, "its database is down");
    shard.run();
    server.wait_delivered();
    assert_eq!((numbers(&common).len(), numbers(&shard).len()), (events_before, 9));
}
