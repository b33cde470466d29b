//! The answers of running servers are those of the console's contract, `api.d.ts`, and the reference names each of its requests.

mod compare;
mod typescript;

use std::net::SocketAddr;

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};
use crate::watch::Stream;
use compare::Contract;

/// Requests that a writer doesn't answer.
const NOT_OF_A_WRITER: &[&str] = &[
    "/api/aggregates",
    "/api/aggregates/NAME/results",
    "/api/dead",
    "/api/dead/ID",
    "/api/dead/groups",
    "/api/events",
    "/api/events/ID",
    "/api/events/ID/story",
    "/api/jobs",
    "/api/jobs/ID",
    "/api/refused",
    "/api/routes",
    "/api/types",
    "/debug/shards",
];
const CONFIG: &str = r#"
[types.access]
routes = ["local"]
[types.access.aggregate.hits]
window = "1m"
measures = { n = "count" }
routes = ["local"]

[types.odd]
transform = [{ hash = "/user" }]
routes = [{ to = "local", when = "missing > 1" }]

[sinks.local]
kind = "sqlite"
"#;

fn contract() -> Contract {
    Contract::read(include_str!("../../../console/page/api.d.ts"))
}

fn get(admin: SocketAddr, path: &str) -> (u16, Value) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(admin, &request);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// The differences of the answer to a `GET` from the type of this name.
fn differences(contract: &Contract, admin: SocketAddr, path: &str, name: &str) -> Vec<String> {
    if ["/api/live", "/api/tap"].contains(&path) {
        return contract.differences(name, &Stream::open(admin, path).next_with("n"));
    }
    match get(admin, path) {
        (200, answer) => contract.differences(name, &answer),
        (status, answer) => vec![format!("{status} {answer}")],
    }
}

/// Compares all `GET` requests but those of `absent`, which may also be answered. `of_path` completes a path.
fn compare_all(admin: SocketAddr, absent: &[&str], of_path: impl Fn(&str) -> String) {
    let contract = contract();
    let mut wrong = Vec::new();
    let requests = contract.requests.iter().filter(|(method, ..)| method == "GET");
    for (_, path, name) in requests {
        let target = of_path(path);
        if absent.contains(&&**path) && get(admin, &target).0 == 404 {
            continue;
        }
        let found = differences(&contract, admin, &target, name).into_iter();
        wrong.extend(found.map(|line| format!("GET {target}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn answers_of_a_server_keep_the_contract() {
    let fixture = Fixture::new(CONFIG);
    let server = fixture.server();
    let (status, answer) = server.post("/ingest/batch/access", "{\"n\":1}\n{\"n\":2}\n");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.post("/ingest/event/odd", "{}").0, 200);
    assert_eq!(server.post("/ingest/event/access", "no JSON").0, 400);
    server.wait("forebay_dead_letters{", |dead| dead == 1);
    server.wait_delivered();
    let dead = get(server.admin, "/api/dead").1;
    let id = dead["letters"][0]["id"].as_str().unwrap().to_owned();
    let events = get(server.admin, "/api/events?limit=1").1;
    let stored = events["events"][0]["id"].as_str().unwrap();
    let post = |path: &str| {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nPrefer: respond-async\r\nConnection: close\r\n\r\n");
        let (status, body) = exchange(server.admin, &head);
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    assert_eq!(post("/api/reload").0, 200);
    let (status, started) = post("/api/dead/replay?type=none");
    assert_eq!(status, 202, "{started}");
    let job = started["job"].as_str().unwrap();
    compare_all(server.admin, &[], |path| {
        let name = if path.starts_with("/api/aggregates") { "access.hits" } else { "local" };
        let stored = format!("/events/{stored}");
        path.replace("/jobs/ID", &format!("/jobs/{job}"))
            .replace("/events/ID", &stored)
            .replace("ID", &id)
            .replace("NAME", name)
    });
}

#[test]
fn answers_of_a_writer_keep_the_contract() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    assert_eq!(server.post("/ingest/event", "{\"n\":1}").0, 200);
    assert!(wait_until(|| writer.metrics().contains("forebay_writer_records_total 1\n")));
    compare_all(writer.admin, NOT_OF_A_WRITER, |path| path.replace("NAME", "local"));
}

#[test]
fn reference_names_each_request_of_the_contract() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/admin-api.md")).unwrap();
    let requests = contract().requests;
    assert!(requests.len() > 30, "{requests:?}");
    let mut missing: Vec<String> = requests
        .iter()
        .map(|(method, path, _)| (method, path.split('?').next().unwrap_or_default()))
        .map(|(method, path)| format!("{method} {path}"))
        .filter(|request| !page.contains(&format!("`{request}`")) && !page.contains(&format!("`{request}?")))
        .collect();
    missing.sort();
    assert!(missing.is_empty(), "docs/reference/admin-api.md lacks {missing:?}");
}
