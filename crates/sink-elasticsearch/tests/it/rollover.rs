//! In-doubt batches, whose index has changed when they are retried.

use serde_json::Value;
use sink::{Batch, Record, Sink, WriteOutcome};
use sink_elasticsearch::{Elasticsearch, IndexTarget, Template};

use crate::fixture::{Fixture, config, server};
use sink_testing::events::{batch_named, batch_of, deliver, id, plain};
use testkit::mock_bulk_server::{MockBulkServer, outcomes};
use testkit::opensearch::OpenSearch;

/// The day on which the events of these tests were received.
const DAY: &str = "2035-10-07";

#[tokio::test]
async fn duplicate_on_another_day_finds_its_first_copy() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.index = format!("{}-{{day}}", fixture.index).parse().unwrap();
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    // The store accepts them, and its response is lost.
    let cut = fixture.proxy.cut_after(10);
    let batch = fresh(1, 100);
    assert!(sink.write(&batch).await.is_err());
    drop(cut);
    assert_eq!(fixture.documents().len(), 100);
    // That day isn't today: the time of delivery would select another index.
    deliver(&sink, &batch).await;
    let index = format!("{}-{DAY}", fixture.index);
    let documents = fixture.documents();
    assert_eq!(documents.len(), 100);
    assert!(documents.iter().all(|(stored_in, ..)| *stored_in == index), "{documents:?}");
}

/// A name with several backing indices.
struct Rolled<'a> {
    fixture: Fixture<'a>,
    name: String,
    is_stream: bool,
}

impl<'a> Rolled<'a> {
    /// A data stream.
    fn stream(server: &'a OpenSearch) -> Self {
        let mut fixture = Fixture::dynamic(server);
        let name = format!("{}-stream", fixture.index);
        let body = format!(r#"{{"index_patterns": ["{name}"], "data_stream": {{}}}}"#);
        fixture.config.index = name.parse().unwrap();
        fixture.config.target = IndexTarget::DataStream;
        fixture.config.template = Some(Template::new(&name, body).unwrap());
        Self { fixture, name, is_stream: true }
    }

    /// An alias with a write index.
    fn alias(server: &'a OpenSearch) -> Self {
        let mut fixture = Fixture::new(server);
        let name = format!("{}-alias", fixture.index);
        let body = format!(r#"{{"aliases": {{"{name}": {{"is_write_index": true}}}}}}"#);
        server.done("PUT", &format!("/{}-000001", fixture.index), &body);
        fixture.config.index = name.parse().unwrap();
        Self { fixture, name, is_stream: false }
    }

    /// Begins another index, which becomes the write index.
    fn roll(&self) {
        self.fixture.server.done("POST", &format!("/{}/_rollover", self.name), "");
    }

    /// The documents of all generations: id and index of each.
    fn documents(&self) -> Vec<(String, String)> {
        let (server, name) = (self.fixture.server, &self.name);
        server.done("POST", &format!("/{name}/_refresh"), "");
        let found: Value = serde_json::from_str(&server.get(&format!("/{name}/_search?size=10000"))).unwrap();
        let hits = found["hits"]["hits"].as_array().unwrap();
        let text = |hit: &Value, member: &str| hit[member].as_str().unwrap().to_owned();
        let mut documents: Vec<_> = hits.iter().map(|hit| (text(hit, "_id"), text(hit, "_index"))).collect();
        documents.sort();
        documents
    }

    /// The documents are those of the events 1 to `count`, once each, and all but the last `newer` in the oldest index.
    fn assert_each_once(&self, count: usize, newer: usize) {
        let documents = self.documents();
        let ids: Vec<&str> = documents.iter().map(|(id, _)| &**id).collect();
        let expected: Vec<String> = (1..=count as u64).map(|sequence| id(0, sequence).to_string()).collect();
        assert_eq!(ids, expected);
        let oldest = documents.iter().filter(|(_, index)| index.ends_with("-000001")).count();
        assert_eq!(oldest, count - newer);
    }
}

impl Drop for Rolled<'_> {
    fn drop(&mut self) {
        if self.is_stream && !std::thread::panicking() {
            let server = self.fixture.server;
            server.done("DELETE", &format!("/_data_stream/{}", self.name), "");
            server.done("DELETE", &format!("/_index_template/{}", self.name), "");
        }
    }
}

/// A batch of plain events that arrive after the sink was created.
fn fresh(first: u64, count: usize) -> Batch {
    let later = |record: Record<'_>| record.received_at + 10 * 365 * 86_400_000_000;
    batch_of(0, first, &vec!["{\"status\": 200}"; count], |record| Record { received_at: later(record), ..record })
}

/// The store accepts a batch, and its response is lost; when the batch is retried, another index is the write index.
async fn retried_after_a_rollover(rolled: &Rolled<'_>) {
    let sink = rolled.fixture.sink();
    sink.connect().await.unwrap();
    let cut = rolled.fixture.proxy.cut_after(10);
    let batch = fresh(1, 50);
    assert!(sink.write(&batch).await.is_err());
    drop(cut);
    rolled.assert_each_once(50, 0);
    rolled.roll();
    // Another process knows it too, from the batch.
    deliver(&rolled.fixture.sink(), &batch.sent_after(0, 50)).await;
    rolled.assert_each_once(50, 0);
    assert_eq!(sink.write(&fresh(51, 5)).await, Ok(WriteOutcome::Committed));
    rolled.assert_each_once(55, 5);
}

#[tokio::test]
async fn stream_retry_after_a_rollover_is_stored_once() {
    let Some(server) = server() else { return };
    retried_after_a_rollover(&Rolled::stream(server)).await;
}

#[tokio::test]
async fn alias_retry_after_a_rollover_is_stored_once() {
    let Some(server) = server() else { return };
    retried_after_a_rollover(&Rolled::alias(server)).await;
}

#[tokio::test]
async fn restart_after_a_rollover_stores_events_once() {
    let Some(server) = server() else { return };
    for rolled in [Rolled::stream(server), Rolled::alias(server)] {
        assert_eq!(rolled.fixture.sink().write(&plain(0, 1, 40)).await, Ok(WriteOutcome::Committed));
        rolled.roll();
        // With another boundary, and more records.
        let sink = rolled.fixture.sink();
        assert_eq!(sink.write(&plain(0, 1, 25).sent_after(0, 40)).await, Ok(WriteOutcome::Committed));
        assert_eq!(sink.write(&plain(0, 26, 35).sent_after(0, 40)).await, Ok(WriteOutcome::Committed));
        rolled.assert_each_once(60, 20);
        // Nothing is ever deleted.
        let counted = server.get(&format!("/{}/_stats/indexing", rolled.name));
        let counted: Value = serde_json::from_str(&counted).unwrap();
        assert_eq!(counted["_all"]["primaries"]["indexing"]["delete_total"], 0, "{counted}");
        // Another event with such an id isn't a duplicate.
        let other = batch_named(0, 100, &["{\"status\": 404}"], |_| id(0, 1)).sent_after(0, 100);
        let Ok(WriteOutcome::Partial { refused, retry }) = sink.write(&other).await else { panic!("its id exists") };
        assert!(refused[0].reason.contains("-000001") && retry.is_empty(), "{}", refused[0].reason);
        rolled.assert_each_once(60, 20);
    }
}

#[tokio::test]
async fn certain_writes_cause_no_lookups() {
    let store = MockBulkServer::start(|request| outcomes(request, |_| 201));
    let sink = Sink::new(Elasticsearch::new(config(&store.url(), "i")));
    for first in [1, 4, 7] {
        assert_eq!(sink.write(&fresh(first, 3)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!(store.asked(), ["GET /", "GET /i/_settings", "POST /_bulk", "POST /_bulk", "POST /_bulk"]);
    // Only records that may have been sent before are looked up.
    assert_eq!(sink.write(&plain(0, 10, 3).sent_after(0, 12)).await, Ok(WriteOutcome::Committed));
    assert_eq!(store.asked(), ["GET /i/_settings", "POST /_bulk"]);
}

/// This is the limit that docs/guides/stores/elasticsearch.md describes: an event that is posted again is another event to Forebay,
/// which looks for it in one index.
#[tokio::test]
async fn new_post_after_a_rollover_is_stored_again() {
    let Some(server) = server() else { return };
    let rolled = Rolled::stream(server);
    let sink = rolled.fixture.sink();
    for expected in [3, 3] {
        assert_eq!(sink.write(&fresh(1, 3)).await, Ok(WriteOutcome::Committed));
        assert_eq!(rolled.documents().len(), expected);
    }
    rolled.roll();
    for expected in [6, 6] {
        assert_eq!(sink.write(&fresh(1, 3)).await, Ok(WriteOutcome::Committed));
        assert_eq!(rolled.documents().len(), expected);
    }
}
