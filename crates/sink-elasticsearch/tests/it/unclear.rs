//! Documents that the store rejects although the store may be at fault: an index that can't be created, a missing routing. Also indices
//! that acknowledge documents before they are on the disk.

use sink::{AllowedRisks, RetryScope, Sink, SinkError, WriteOutcome};
use sink_elasticsearch::Elasticsearch;

use crate::fixture::{Fixture, config, server};
use sink_testing::events::{deliver, plain};
use testkit::mock_bulk_server::{ABOUT, MockBulkServer, outcomes};

/// The scope of each record that waits. None is rejected.
fn waiting(answer: Result<WriteOutcome, SinkError>) -> Vec<RetryScope> {
    match answer {
        Ok(WriteOutcome::Partial { refused, retry }) if refused.is_empty() => {
            retry.iter().map(|retry| retry.scope).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// A store that rejects the documents whose numbers are in `rejected`, and has the index or hasn't.
fn store(has_index: bool, rejected: &'static [usize]) -> MockBulkServer {
    MockBulkServer::raw(move |request| {
        let is_of_index = request.line.starts_with("GET /i ");
        match request.is_bulk() {
            true => outcomes(request, |number| if rejected.contains(&number) { 400 } else { 201 }),
            false if is_of_index && !has_index => (404, "{}".to_owned()),
            false if request.line.contains("_settings") => (200, "{}".to_owned()),
            false => (200, ABOUT.to_owned()),
        }
    })
}

#[tokio::test]
async fn rejected_document_waits_for_others_of_its_index() {
    let on = |store: &MockBulkServer| Sink::new(Elasticsearch::new(config(&store.url(), "i")));
    let (all, some) = (&[0, 1, 2][..], &[1][..]);
    let answer = on(&store(true, all)).write(&plain(0, 1, 3)).await;
    assert_eq!(waiting(answer), [RetryScope::Unclear; 3], "the documents or the store");
    let answer = on(&store(false, all)).write(&plain(0, 1, 3)).await;
    assert_eq!(waiting(answer), [RetryScope::Record; 3], "an index that can't be created is no fault of documents");
    let answer = on(&store(true, some)).write(&plain(0, 1, 3)).await;
    assert_eq!(waiting(answer), [RetryScope::Unclear], "delivery decides");
}

#[tokio::test]
async fn index_that_cannot_be_created_rejects_no_document() {
    let Some(server) = server() else { return };
    for (what, template) in [
        ("alias", r#"{"aliases": {"NAME-taken": {}}}"#),
        ("sort", r#"{"settings": {"index.sort.field": "nofield"}}"#),
        ("analyzer", r#"{"mappings": {"properties": {"a": {"type": "text", "analyzer": "none"}}}}"#),
    ] {
        let mut fixture = Fixture::dynamic(server);
        let name = fixture.index.clone();
        let (installed, pattern) = (format!("/_index_template/{name}"), format!("{name}-*"));
        let body = template.replace("NAME", &name);
        server.done("PUT", &format!("/{name}-taken/_doc/1"), "{}");
        let sent = format!(r#"{{"index_patterns": ["{pattern}"], "priority": 500, "template": {body}}}"#);
        let answered = server.ask("PUT", &installed, &sent);
        // Newer servers validate some templates when they are installed.
        if !(200..300).contains(&answered.status) {
            continue;
        }
        fixture.config.index = format!("{name}-{{day}}").parse().unwrap();
        let answer = fixture.sink().write(&plain(0, 1, 3)).await;
        assert_eq!(waiting(answer), [RetryScope::Record; 3], "{what}");
        server.done("DELETE", &installed, "");
        deliver(&fixture.sink(), &plain(0, 1, 3)).await;
    }
}

#[tokio::test]
async fn missing_routing_rejects_no_document() {
    let Some(server) = server() else { return };
    let fixture = Fixture::dynamic(server);
    server.done("PUT", &format!("/{}", fixture.index), r#"{"mappings": {"_routing": {"required": true}}}"#);
    let answer = fixture.sink().write(&plain(0, 1, 3)).await;
    assert_eq!(waiting(answer), [RetryScope::Unclear; 3]);
}

#[tokio::test]
async fn async_translog_is_rejected_unless_allowed() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::dynamic(server);
    let (index, durability) = (fixture.index.clone(), r#"{"index.translog.durability": "async"}"#);
    server.done("PUT", &format!("/{index}"), &format!(r#"{{"settings": {durability}}}"#));
    let expect_refused = |answer: Result<WriteOutcome, SinkError>| {
        let is_refused = matches!(&answer, Err(SinkError::Misconfigured(reason)) if reason.contains("translog_async"));
        assert!(is_refused, "{answer:?}");
    };
    let sink = fixture.sink();
    expect_refused(sink.write(&plain(0, 1, 3)).await);
    assert_eq!(fixture.count(), 0, "nothing is written");
    server.done("PUT", &format!("/{index}/_settings"), &durability.replace("async", "request"));
    deliver(&sink, &plain(0, 1, 3)).await;
    // Found at a reconnect.
    server.done("PUT", &format!("/{index}/_settings"), durability);
    assert!(matches!(sink.connect().await, Err(SinkError::Misconfigured(_))));
    expect_refused(sink.write(&plain(0, 4, 3)).await);
    fixture.config.allowed = AllowedRisks::new(vec!["translog_async"]);
    deliver(&fixture.sink(), &plain(0, 4, 3)).await;
    assert!(fixture.sink().warning().unwrap().contains("translog_async"));
}

#[tokio::test]
async fn index_with_an_async_template_is_rejected() {
    let Some(server) = server() else { return };
    let fixture = Fixture::dynamic(server);
    let installed = format!("/_index_template/{}", fixture.index);
    let settings = r#"{"settings": {"index.translog.durability": "async"}}"#;
    let body = format!(r#"{{"index_patterns": ["{}"], "priority": 500, "template": {settings}}}"#, fixture.index);
    server.done("PUT", &installed, &body);
    let answer = fixture.sink().write(&plain(0, 1, 3)).await;
    assert!(matches!(&answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
    server.done("DELETE", &installed, "");
}
