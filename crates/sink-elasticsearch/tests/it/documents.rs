//! Events as documents in the store, and the documents that it rejects.

use bytes::Bytes;
use event::EventId;
use serde_json::Value;
use sink::{Batch, Record, RetryScope, Sink, SinkError, Write, WriteOutcome};
use sink_elasticsearch::{DocumentConflictPolicy, Elasticsearch, ElasticsearchConfig, IndexTarget, Template};

use crate::fixture::{Fixture, server};
use sink_testing::events::{batch, batch_named, id, lane, plain};

/// A day, in microseconds.
const DAY: i64 = 86_400_000_000;

/// An event without its position.
struct Event {
    id: EventId,
    time: i64,
    write: Write,
}

fn events(events: &[Event]) -> Batch {
    let mut batch = Batch::new(lane(0), 1);
    for (sequence, event) in (1..).zip(events) {
        let block = Bytes::from(format!("access{{\"n\":{sequence}}}"));
        let record = Record {
            sequence,
            id: event.id,
            type_name: std::str::from_utf8(&block[..6]).unwrap(),
            source: "",
            received_at: 0,
            event_time: Some(event.time),
            write: event.write,
            payload: &block[6..],
        };
        batch.push(&block, &record);
    }
    batch
}

fn sink(config: ElasticsearchConfig) -> Sink {
    Sink::new(Elasticsearch::new(config))
}

/// The one document of the index, without its time.
fn only_document(fixture: &Fixture<'_>) -> Value {
    let documents = fixture.documents();
    assert_eq!(documents.len(), 1, "{documents:?}");
    let mut document: Value = serde_json::from_str(&documents[0].2).unwrap();
    document.as_object_mut().unwrap().remove("@timestamp");
    document
}

#[tokio::test]
async fn unfit_document_is_rejected_alone() {
    let Some(server) = server() else { return };
    let fixture = Fixture::dynamic(server);
    let payloads = [r#"{"n": 1}"#, r#"{"n": "x"}"#, r#"{"n": 2}"#, r#"{"": 1}"#, r#"{"a": 1, "a": 2}"#, r#"{"n": 3}"#];
    let answer = fixture.sink().write(&batch(0, 1, &payloads)).await;
    let Ok(WriteOutcome::Partial { refused, retry }) = answer else { panic!("{answer:?}") };
    // A value that doesn't fit its field is the document's fault. Delivery decides about the others.
    assert!(
        refused.iter().any(|refusal| refusal.index == 1 && refusal.reason.contains("failed to parse field [n]")),
        "{refused:?}"
    );
    assert!(retry.iter().all(|retry| retry.scope == RetryScope::Unclear), "{retry:?}");
    let mut failed: Vec<(usize, &str)> = refused.iter().map(|refusal| (refusal.index, &*refusal.reason)).collect();
    failed.extend(retry.iter().map(|retry| (retry.index, &*retry.reason)));
    failed.sort_unstable();
    let expected = [(1, "failed to parse field [n]"), (3, "empty string"), (4, "Duplicate field")];
    assert_eq!(failed.len(), expected.len(), "{failed:?}");
    for ((index, reason), (at, words)) in failed.iter().zip(expected) {
        assert!(*index == at && reason.contains(words), "{reason}");
    }
    assert_eq!(fixture.count(), 3);
}

#[tokio::test]
async fn duplicates_are_found_in_their_days_index() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.index = format!("{}-{{type}}-{{day}}", fixture.index).parse().unwrap();
    let of = |number, time| Event { id: id(3, number), time, write: Write::Insert };
    // All were received at the beginning of 1970: an event with a time after the next day is in the next day's index.
    let batch = events(&[of(1, 0), of(2, 300 * DAY), of(3, DAY - 1), of(4, DAY)]);
    for _ in 0..2 {
        assert_eq!(fixture.sink().write(&batch).await, Ok(WriteOutcome::Committed));
    }
    let mut found: Vec<_> = fixture.documents().into_iter().map(|(index, id, _)| (id, index)).collect();
    found.sort();
    let expected = [(1, "1970-01-01"), (2, "1970-01-02"), (3, "1970-01-01"), (4, "1970-01-02")]
        .map(|(number, day)| (id(3, number).to_string(), format!("{}-access-{day}", fixture.index)));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn missing_template_is_installed() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::dynamic(server);
    let (name, stream) = (format!("t{}", fixture.index), format!("{}-stream", fixture.index));
    let template = |shards: u32| {
        let settings = format!(r#"{{"settings": {{"number_of_shards": {shards}, "number_of_replicas": 0}}}}"#);
        let body = format!(r#"{{"index_patterns": ["{stream}"], "data_stream": {{}}, "template": {settings}}}"#);
        Template::new(&name, body).unwrap()
    };
    fixture.config.index = stream.parse().unwrap();
    fixture.config.target = IndexTarget::DataStream;
    let of = |number, write| Event { id: id(4, number), time: DAY, write };
    let batch = events(&[of(1, Write::Insert), of(2, Write::Upsert(1)), of(2, Write::Upsert(2)), of(3, Write::Insert)]);
    // The second template has the first one's name: the existing one is kept.
    for shards in [1, 3] {
        let sink = sink(ElasticsearchConfig { template: Some(template(shards)), ..fixture.config.clone() });
        assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
        let installed = server.get(&format!("/_index_template/{name}"));
        assert!(installed.contains(r#""number_of_shards":"1""#), "{installed}");
    }
    server.done("POST", &format!("/{stream}/_refresh"), "");
    let found: Value = serde_json::from_str(&server.get(&format!("/{stream}/_search"))).unwrap();
    let hits = found["hits"]["hits"].as_array().unwrap();
    let mut ids: Vec<&str> = hits.iter().map(|hit| hit["_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let expected = [id(4, 1).to_string(), format!("{}-1", id(4, 2)), format!("{}-2", id(4, 2)), id(4, 3).to_string()];
    assert_eq!(ids, expected);
    assert!(hits.iter().all(|hit| hit["_index"].as_str().unwrap().starts_with(".ds-")), "{found}");
    server.done("DELETE", &format!("/_data_stream/{stream}"), "");
    server.done("DELETE", &format!("/_index_template/{name}"), "");
    let wrong = Template::new(&name, r#"{"index_patterns": ["x-*"], "unknown": 1}"#.to_owned()).unwrap();
    let sink = sink(ElasticsearchConfig { template: Some(wrong), ..fixture.config.clone() });
    let answer = sink.connect().await;
    assert!(matches!(&answer, Err(SinkError::Misconfigured(reason)) if reason.contains("unknown")), "{answer:?}");
}

#[tokio::test]
async fn conflict_rule_decides_about_existing_ids() {
    let Some(server) = server() else { return };
    let one = |payload: &str| batch_named(0, 1, &[payload], |_| id(5, 1));
    let other = |payload: &str| batch_named(1, 7, &[payload], |_| id(5, 1));
    for (conflict, expected) in [
        (DocumentConflictPolicy::DeadLetter, r#"{"a": 1, "b": {}}"#),
        (DocumentConflictPolicy::Ignore, r#"{"a": 1, "b": {}}"#),
        (DocumentConflictPolicy::Overwrite, r#"{"a": 2, "c": 3}"#),
        (DocumentConflictPolicy::Merge, r#"{"a": 2, "b": {}, "c": 3}"#),
    ] {
        let mut fixture = Fixture::new(server);
        fixture.config.conflict = conflict;
        let sink = fixture.sink();
        assert_eq!(sink.write(&one(r#"{"a": 1, "b": {}}"#)).await, Ok(WriteOutcome::Committed));
        let answer = sink.write(&other(r#"{"a": 2, "c": 3}"#)).await;
        match (conflict, answer) {
            (DocumentConflictPolicy::DeadLetter, Ok(WriteOutcome::Partial { refused, .. })) => {
                assert!(refused[0].reason.contains("another document"), "{}", refused[0].reason);
                // Another lane, another time, other spaces: it is still the same event.
                assert_eq!(sink.write(&other("{\"b\": {},\n\"a\": 1}")).await, Ok(WriteOutcome::Committed));
            }
            (DocumentConflictPolicy::DeadLetter, answer) => panic!("{answer:?}"),
            (_, answer) => assert_eq!(answer, Ok(WriteOutcome::Committed)),
        }
        assert_eq!(only_document(&fixture), serde_json::from_str::<Value>(expected).unwrap(), "{conflict:?}");
    }
}

#[tokio::test]
async fn blocked_index_gets_its_documents_later() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.gzip = true;
    let (sink, index) = (fixture.sink(), &fixture.index);
    assert_eq!(sink.write(&plain(0, 1, 100)).await, Ok(WriteOutcome::Committed));
    let blocks =
        |is: bool| server.done("PUT", &format!("/{index}/_settings"), &format!(r#"{{"index.blocks.write": {is}}}"#));
    let expect_retry = async |first: u64| {
        let answer = sink.write(&plain(0, first, 50)).await;
        assert!(
            matches!(&answer, Ok(WriteOutcome::Partial { retry, refused }) if retry.len() == 50 && refused.is_empty()),
            "{answer:?}"
        );
    };
    blocks(true);
    expect_retry(101).await;
    blocks(false);
    assert_eq!(sink.write(&plain(0, 101, 50)).await, Ok(WriteOutcome::Committed));
    server.done("POST", &format!("/{index}/_close"), "");
    expect_retry(151).await;
    server.done("POST", &format!("/{index}/_open?wait_for_active_shards=1"), "");
    assert_eq!(sink.write(&plain(0, 151, 50)).await, Ok(WriteOutcome::Committed));
    assert_eq!(fixture.count(), 200);
}
