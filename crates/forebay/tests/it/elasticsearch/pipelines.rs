//! Ingest pipelines of the store that fail one document, or drop it.

use std::process::Command;

use crate::support::{Folder, Server, forebay};
use testkit::opensearch::OpenSearch;

/// Fails on the document with the number 5000, and drops those with a negative number.
const PIPELINE: &str = r#"{"processors": [
    {"fail": {"if": "ctx.number == 5000", "message": "number 5000 isn't for now"}},
    {"drop": {"if": "ctx.number < 0"}}
]}"#;

/// A pipeline of this name, and an index of the same name that uses it.
fn store(name: &str) -> Option<&'static OpenSearch> {
    let store = OpenSearch::shared()?;
    store.done("PUT", &format!("/_ingest/pipeline/{name}"), PIPELINE);
    let settings = format!(r#"{{"settings": {{"number_of_replicas": 0, "index.default_pipeline": "{name}"}}}}"#);
    store.done("PUT", &format!("/{name}"), &settings);
    Some(store)
}

fn start(folder: &Folder, store: &OpenSearch, index: &str) -> Server {
    super::start(folder, &format!("http://{}", store.address()), &format!("index = \"{index}\"\n"))
}

/// The output of a command for the running server.
fn run_command(server: &Server, folder: &Folder, words: [&str; 2]) -> String {
    let mut command: Command = forebay();
    command.args(words).args(["--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn document_failing_pipeline_is_deferred_alone() {
    let Some(store) = store("picky") else { return };
    let folder = Folder::new();
    let server = start(&folder, store, "picky");
    let lines: String = (0..10_000).map(|number| format!("{{\"number\": {number}}}\n")).collect();
    assert_eq!(server.post("/ingest/batch/access", &lines).0, 200);
    server.wait("forebay_events_stored_total{", |stored| stored == 9_999);
    assert_eq!((server.metric("forebay_events_deferred{"), server.metric("forebay_events_pending{")), (1, 1));
    let routes = run_command(&server, &folder, ["route", "list"]);
    assert!(routes.contains("1 deferred") && routes.contains("number 5000 isn't for now"), "{routes}");
    store.done("POST", "/picky/_refresh", "");
    assert!(store.get("/picky/_count").contains("\"count\":9999"));
    // A server that is killed has it after its next start.
    drop(server);
    let server = start(&folder, store, "picky");
    server.wait("forebay_events_deferred{", |count| count == 1);
    store.done("PUT", "/_ingest/pipeline/picky", r#"{"processors": []}"#);
    server.wait("forebay_events_stored_total{", |stored| stored == 10_000);
    assert_eq!((server.metric("forebay_events_deferred{"), server.metric("forebay_events_pending{")), (0, 0));
    store.done("POST", "/picky/_refresh", "");
    assert!(store.get("/picky/_count").contains("\"count\":10000"));
}

#[test]
fn document_dropped_by_pipeline_is_dead_letter() {
    let Some(store) = store("dropping") else { return };
    let folder = Folder::new();
    let server = start(&folder, store, "dropping");
    assert_eq!(server.post("/ingest/batch/access", "{\"number\": 1}\n{\"number\": -1}\n{\"number\": 2}\n").0, 200);
    server.wait_delivered();
    assert_eq!((server.metric("forebay_events_stored_total{"), server.metric("forebay_events_dead_total{")), (2, 1));
    let listed = run_command(&server, &folder, ["dead", "list"]);
    assert!(listed.contains("drop processor"), "{listed}");
}
