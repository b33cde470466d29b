//! Events of PostgreSQL over HTTP: of tables with columns, and larger in the store than they were sent.

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, exchange};
use testkit::postgres::PostgresServer;

pub(super) fn get(server: &Server, target: &str) -> (u16, Value) {
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(server.intake, &request);
    (status, serde_json::from_str(&body).unwrap())
}

fn start(folder: &Folder, configuration: &str) -> Server {
    let file = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&file), &folder.path("log"))
}

#[test]
fn typed_tables_are_read_or_say_why_not() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let (folder, url) = (Folder::new(), postgres.url());
    let sink = |name: &str, payload: bool| {
        format!(
            "[sinks.{name}]\nkind = \"postgres\"\nurl = \"{url}\"\ntable = \"{name}\"\npayload = {payload}\n\
             columns = {{ n = \"/n\" }}\n"
        )
    };
    let types = "[types.one]\nroutes = [\"typed\"]\n[types.bare]\nroutes = [\"lean\"]\n\
                 [types.two]\nroutes = [\"shared\"]\n[types.three]\nroutes = [\"shared\"]\n";
    let sinks = [sink("typed", true), sink("lean", false), sink("shared", true)].concat();
    let server = start(&folder, &format!("{types}{sinks}"));
    for name in ["one", "bare", "two", "three"] {
        assert_eq!(server.post(&format!("/ingest/event/{name}"), r#"{"n": 1}"#).0, 200);
    }
    server.wait_delivered();
    let (status, page) = get(&server, "/events?type=one");
    let event = &page["events"][0];
    assert_eq!((status, &event["type"], &event["payload"]["n"]), (200, &"one".into(), &1.into()));
    let id = event["id"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/events/{id}?type=one")).1, *event);
    assert_eq!(get(&server, "/events?type=one&order=desc").0, 200);
    for (name, why) in [("bare", "set `payload = true`"), ("two", "give each type a sink"), ("three", "give each type")]
    {
        let (status, problem) = get(&server, &format!("/events?type={name}"));
        assert_eq!((status, &problem["code"]), (404, &"not_readable".into()), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
}

#[test]
fn event_enlarged_by_store_is_shown_without_payload() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let (folder, url) = (Folder::new(), postgres.url());
    let server =
        start(&folder, &format!("[types.\"*\"]\nroutes = [\"s\"]\n[sinks.s]\nkind = \"postgres\"\nurl = \"{url}\"\n"));
    let large = format!("[{}]", vec!["1e131071"; 90_000].join(","));
    for payload in ["1", &large, "2"] {
        assert_eq!(server.post("/ingest/event/event", payload).0, 200);
    }
    server.wait_delivered();
    let (status, page) = get(&server, "/events");
    let events = page["events"].as_array().unwrap();
    assert_eq!((status, events.len(), page["next"].is_null()), (200, 3, true));
    let omitted: Vec<&Value> = events.iter().filter(|event| event["payload_omitted"] == true).collect();
    assert!(omitted.len() == 1 && omitted[0]["payload_bytes"].as_u64() > Some(11_000_000_000), "{omitted:?}");
    assert!(omitted[0].get("payload").is_none());
    let id = omitted[0]["id"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/events/{id}")), (200, omitted[0].clone()));
}
