//! The real program with PostgreSQL: from a request to a row and back, with both processes killed.

mod failover;
mod over_tls;
mod read_back;
mod shard_reads;
mod shards;

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, exchange, wait_until};
use testkit::postgres::PostgresServer;

fn start(folder: &Folder, postgres: &PostgresServer) -> Server {
    start_on(folder, &postgres.url(), "")
}

/// A server that delivers to this URL, with more settings of its sink.
fn start_on(folder: &Folder, url: &str, settings: &str) -> Server {
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"warehouse\"]\n[sinks.warehouse]\nkind = \"postgres\"\nurl = \"{url}\"\npayload_type = \"text\"\n{settings}"
    );
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":  {number}}}"))
}

#[test]
fn acknowledged_events_are_stored_once_through_kills() {
    let Some(postgres) = PostgresServer::start() else { return };
    let folder = Folder::new();
    let mut server = start(&folder, &postgres);
    let mut number = 0;
    for _ in 0..4 {
        for _ in 0..30 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Events in flight now are stored or not: their outcome is unknown.
        postgres.kill();
        for _ in 0..10 {
            assert_eq!(post(&server, number), 200, "events are accepted while the store is down");
            number += 1;
        }
        drop(server);
        postgres.run();
        server = start(&folder, &postgres);
        // Some are resent, as by a client that got no answer.
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    let rows = postgres.psql("select payload from events order by (payload::jsonb->>'number')::int");
    let expected: Vec<String> = (0..number).map(|number| format!("{{\"number\":  {number}}}")).collect();
    assert_eq!(rows, expected.join("\n"));
    assert_eq!(server.metric("forebay_events_accepted_total{"), number as u64);
    assert_eq!(server.metric("forebay_events_stored_total{"), number as u64);
}

#[test]
fn rejected_rows_are_dead_letters_and_others_readable() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    postgres.psql(
        "create table events (id uuid primary key, type text, source text, received_at timestamptz, payload jsonb
         check (payload->>'a' <> 'bad'))",
    );
    let server = start(&folder, &postgres);
    assert_eq!(server.post("/ingest/batch/access", "{\"a\": 1}\n{\"a\": \"bad\"}\n{\"a\": 3}\n").0, 200);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    assert_eq!(server.metric("forebay_events_stored_total{"), 2);
    let mut answer = (0, String::new());
    let has_both = wait_until(|| {
        answer =
            exchange(server.intake, "GET /events?type=access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        answer.0 == 200
    });
    assert!(has_both, "{answer:?}");
    let page: Value = serde_json::from_str(&answer.1).unwrap();
    let payloads: Vec<&Value> = page["events"].as_array().unwrap().iter().map(|event| &event["payload"]["a"]).collect();
    assert_eq!(payloads, [1, 3]);
    assert_eq!(server.stop("-TERM"), Some(0));
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn columns_are_created_in_configured_order() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let folder = Folder::new();
    let settings = "payload = true\ncolumns = { zone = \"/zone\", number = \"/number\", at = \"/at\" }";
    let server = start_on(&folder, &postgres.url(), settings);
    assert_eq!(post(&server, 1), 200);
    server.wait_delivered();
    let columns = "select string_agg(column_name, ' ' order by ordinal_position) from information_schema.columns \
                   where table_name = 'events'";
    assert_eq!(postgres.psql(columns), "id received_at zone number at payload stored_in stored_number");
}
