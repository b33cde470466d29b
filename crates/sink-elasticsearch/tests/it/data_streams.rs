//! Data streams without a template: nothing is ever written to a plain index of their name.

use serde_json::Value;
use sink::{Sink, SinkError, WriteOutcome};
use sink_elasticsearch::{Elasticsearch, ElasticsearchConfig, IndexTarget, Template};

use crate::fixture::{Fixture, config, server};
use sink_testing::events::{batch, plain};
use testkit::mock_bulk_server::{ABOUT, MockBulkServer, outcomes};
use testkit::opensearch::OpenSearch;

/// A name without a template, and a sink's configuration for it.
fn stream<'a>(server: &'a OpenSearch, name: &str) -> (Fixture<'a>, String) {
    let mut fixture = Fixture::dynamic(server);
    let name = format!("{}-{name}", fixture.index);
    fixture.config.index = name.parse().unwrap();
    fixture.config.target = IndexTarget::DataStream;
    (fixture, name)
}

fn template(name: &str, more: &str) -> String {
    format!(r#"{{"index_patterns": ["{name}*"], "priority": 7{more}}}"#)
}

fn rejection<T: std::fmt::Debug>(answer: Result<T, SinkError>) -> String {
    match answer {
        Err(SinkError::Misconfigured(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

fn remove(server: &OpenSearch, name: &str) {
    server.done("DELETE", &format!("/_data_stream/{name}*"), "");
    server.done("DELETE", &format!("/_index_template/{name}"), "");
}

#[tokio::test]
async fn nothing_is_written_until_a_template_exists() {
    let Some(server) = server() else { return };
    let (fixture, name) = stream(server, "none");
    let sink = fixture.sink();
    let exists = || server.ask("HEAD", &format!("/{name}"), "").status == 200;
    for said in [rejection(sink.connect().await), rejection(sink.write(&plain(0, 1, 3)).await)] {
        assert!(said.contains(&format!("the data stream {name} doesn't exist")), "{said}");
        assert!(said.contains("\"data_stream\": {}") && said.contains("index template"), "{said}");
    }
    assert!(!exists(), "not even an index");
    // A template that matches, but doesn't declare a data stream.
    server.done("PUT", &format!("/_index_template/{name}"), &template(&name, ""));
    let said = rejection(sink.write(&plain(0, 1, 3)).await);
    assert!(said.contains("\"data_stream\": {}"), "{said}");
    assert!(!exists());
    server.done("PUT", &format!("/_index_template/{name}"), &template(&name, r#", "data_stream": {}"#));
    assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
    let indices: Value = serde_json::from_str(&server.get(&format!("/{name}/_settings"))).unwrap();
    assert!(indices.as_object().unwrap().keys().all(|index| index.starts_with(".ds-")), "{indices}");
    remove(server, &name);
}

#[tokio::test]
async fn index_or_alias_is_no_data_stream() {
    let Some(server) = server() else { return };
    for is_alias in [false, true] {
        let (fixture, name) = stream(server, "taken");
        let (index, body) = match is_alias {
            false => (name.clone(), String::new()),
            true => (format!("{name}-1"), format!(r#"{{"aliases": {{"{name}": {{"is_write_index": true}}}}}}"#)),
        };
        server.done("PUT", &format!("/{index}"), &body);
        server.done("PUT", &format!("/_index_template/{name}"), &template(&name, r#", "data_stream": {}"#));
        let sink = fixture.sink();
        for said in [rejection(sink.connect().await), rejection(sink.write(&plain(0, 1, 3)).await)] {
            assert!(said.contains(&format!("{name} is an index or an alias")), "{said}");
        }
        let counted: Value = serde_json::from_str(&server.get(&format!("/{index}/_count"))).unwrap();
        assert_eq!(counted["count"], 0);
        server.done("DELETE", &format!("/{index}"), "");
        assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
        remove(server, &name);
    }
}

#[tokio::test]
async fn data_stream_is_created_before_its_first_event() {
    let Some(server) = server() else { return };
    let (mut fixture, name) = stream(server, "by");
    fixture.config.index = format!("{name}-{{type}}").parse().unwrap();
    let sink = fixture.sink();
    assert_eq!(sink.connect().await, Ok(()), "no name is known before an event is");
    let said = rejection(sink.write(&plain(0, 1, 3)).await);
    assert!(said.contains(&format!("the data stream {name}-")), "{said}");
    let body = template(&name, r#", "data_stream": {}"#);
    fixture.config.template = Some(Template::new(&name, body).unwrap());
    assert_eq!(fixture.sink().write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
    remove(server, &name);
}

/// The stream and its template are removed while a sink writes to it.
#[tokio::test]
async fn accidental_plain_index_is_reported() {
    let Some(server) = server() else { return };
    let (fixture, name) = stream(server, "gone");
    let body = template(&name, r#", "data_stream": {}"#);
    server.done("PUT", &format!("/_index_template/{name}"), &body);
    let sink = fixture.sink();
    assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
    remove(server, &name);
    for _ in 0..2 {
        let said = rejection(sink.write(&plain(0, 4, 3)).await);
        assert!(said.contains(&format!("{name} is an index or an alias")), "{said}");
    }
    server.done("DELETE", &format!("/{name}"), "");
    let said = rejection(sink.write(&plain(0, 4, 3)).await);
    assert!(said.contains("doesn't exist"), "{said}");
    server.done("PUT", &format!("/_index_template/{name}"), &body);
    assert_eq!(sink.write(&plain(0, 4, 3)).await, Ok(WriteOutcome::Committed));
    remove(server, &name);
}

const READ: &str = "GET /_data_stream/i";
const CREATE: &str = "PUT /_data_stream/i";

/// A store that forbids the user the requests with the prefixes `forbidden`. Documents are put into this index.
fn guarded(forbidden: &'static [&'static str], index: &'static str) -> MockBulkServer {
    MockBulkServer::raw(move |request| match () {
        () if request.line.starts_with("GET / ") => (200, ABOUT.to_owned()),
        () if request.is_bulk() => {
            let (status, body) = outcomes(request, |_| 201);
            (status, body.replace("\"_index\": \"i\"", &format!("\"_index\": \"{index}\"")))
        }
        () if forbidden.iter().any(|line| request.line.starts_with(line)) => {
            (403, r#"{"error": {"type": "security_exception", "reason": "no permissions"}}"#.to_owned())
        }
        () if request.line.starts_with("GET") => (404, "{}".to_owned()),
        () => (200, r#"{"acknowledged": true}"#.to_owned()),
    })
}

#[tokio::test]
async fn user_without_rights_gets_the_stores_message() {
    let sink = |store: &MockBulkServer| {
        let config = ElasticsearchConfig { target: IndexTarget::DataStream, ..config(&store.url(), "i") };
        Sink::new(Elasticsearch::new(config))
    };
    let event = batch(0, 1, &["{}"]);

    let store = guarded(&[CREATE], ".ds-i-000001");
    let said = rejection(sink(&store).write(&event).await);
    assert!(said.contains("the user may not create it") && said.contains("no permissions"), "{said}");
    assert!(store.bulks().is_empty());

    let store = guarded(&[READ, CREATE], ".ds-i-000001");
    assert_eq!(sink(&store).write(&event).await, Ok(WriteOutcome::Committed));

    let store = guarded(&[READ, CREATE], "i");
    let said = rejection(sink(&store).write(&event).await);
    assert!(said.contains("i is an index or an alias"), "{said}");

    let store = guarded(&[], ".ds-i-000001");
    let sink = sink(&store);
    let first =
        ["GET /", "GET /_data_stream/i", "PUT /_data_stream/i", "GET /i/_settings", "POST /_bulk", "GET /i/_settings"];
    for expected in [&first[..], &["POST /_bulk"]] {
        assert_eq!(sink.write(&event).await, Ok(WriteOutcome::Committed));
        assert_eq!(store.asked(), expected, "a name is checked once");
    }
}

#[tokio::test]
async fn strict_mapping_accepts_documents_without_a_time() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::dynamic(server);
    let mapping = r#"{"mappings": {"dynamic": "strict", "properties": {"n": {"type": "long"}}}}"#;
    server.done("PUT", &format!("/{}", fixture.index), mapping);
    let event = batch(0, 1, &["{\"n\": 1}"]);
    let Ok(WriteOutcome::Partial { retry, .. }) = fixture.sink().write(&event).await else { panic!("it is strict") };
    assert!(retry[0].reason.contains("@timestamp"), "{}", retry[0].reason);
    fixture.config.has_timestamp = false;
    for _ in 0..2 {
        assert_eq!(fixture.sink().write(&event).await, Ok(WriteOutcome::Committed), "also a second time");
    }
    assert_eq!(fixture.documents().len(), 1);
    assert_eq!(fixture.documents()[0].2, "{\"n\": 1}");
}
