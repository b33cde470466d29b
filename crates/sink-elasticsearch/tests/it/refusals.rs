//! Responses of a busy store, a proxy, or another program; and the requests that are sent.

use std::io::Read;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use sink::{RetryScope, Sink, SinkError, WriteOutcome};
use sink_elasticsearch::{ApiKey, Elasticsearch, ElasticsearchConfig};
use tokio::sync::Notify;

use crate::fixture::config;
use sink_testing::events::{id, plain};
use testkit::mock_bulk_server::{ABOUT, MockBulkServer, Request, outcomes};
use testkit::ports::free_address;

fn sink(config: ElasticsearchConfig) -> Sink {
    Sink::new(Elasticsearch::new(config))
}

fn sink_on(store: &MockBulkServer) -> Sink {
    sink(config(&store.url(), "i"))
}

fn all_stored(request: &Request) -> (u16, String) {
    outcomes(request, |_| 201)
}

#[tokio::test]
async fn only_overloaded_documents_are_resent() {
    let asked = AtomicUsize::new(0);
    let store = MockBulkServer::start(move |request| {
        let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
        outcomes(request, |number| match number {
            2 | 3 if is_first => 429,
            5 if is_first => 503,
            6 if is_first => 400,
            _ => 201,
        })
    });
    let (sink, batch) = (sink_on(&store), plain(0, 1, 10));
    let Ok(WriteOutcome::Partial { refused, retry }) = sink.write(&batch).await else { panic!("some are left") };
    let scopes: Vec<_> = retry.iter().map(|retry| (retry.index, retry.scope)).collect();
    let (busy, unclear) = (RetryScope::Store, RetryScope::Unclear);
    assert_eq!((refused, scopes), (Vec::new(), vec![(2, busy), (3, busy), (5, busy), (6, unclear)]));
    assert!(retry[3].reason.contains("some_exception: words"), "{}", retry[3].reason);
    assert_eq!(store.bulks().len(), 1);
    let rest = batch.without(&[0, 1, 4, 6, 7, 8, 9]);
    assert_eq!(sink.write(&rest).await, Ok(WriteOutcome::Committed));
    assert_eq!(store.bulks()[0].ids(), [3, 4, 6].map(|sequence| id(0, sequence).to_string()));
}

#[tokio::test]
async fn overload_is_temporary_and_unauthorized_is_not() {
    for (status, acts) in [(429, false), (503, false), (500, false), (401, true), (403, true), (404, true), (301, true)]
    {
        let answer = r#"{"error": {"type": "some_exception", "reason": "words"}}"#;
        let store = MockBulkServer::start(move |_| (status, answer.to_owned()));
        match sink_on(&store).write(&plain(0, 1, 3)).await {
            Err(SinkError::Unavailable(reason)) => assert!(!acts && reason.contains("words"), "{status}: {reason}"),
            Err(SinkError::Misconfigured(reason)) => assert!(acts && reason.contains("words"), "{status}: {reason}"),
            other => panic!("{status}: {other:?}"),
        }
    }
    // All of them, one by one: this doesn't reject any of them.
    let store = MockBulkServer::start(|request| outcomes(request, |_| 429));
    let answer = sink_on(&store).write(&plain(0, 1, 3)).await;
    assert!(matches!(&answer, Err(SinkError::Unavailable(reason)) if reason.contains("words")), "{answer:?}");
    // The documents may be at fault.
    let store = MockBulkServer::start(|request| outcomes(request, |_| 500));
    let answer = sink_on(&store).write(&plain(0, 1, 3)).await;
    assert!(matches!(&answer, Ok(WriteOutcome::Partial { retry, .. }) if retry.len() == 3), "{answer:?}");
}

#[tokio::test]
async fn invalid_response_stores_nothing() {
    for body in ["", "{}", r#"{"items": []}"#, "<html>"] {
        let store = MockBulkServer::start(move |_| (200, body.to_owned()));
        let answer = sink_on(&store).write(&plain(0, 1, 3)).await;
        assert!(matches!(&answer, Err(SinkError::Unavailable(_))), "{body}: {answer:?}");
    }
    for about in ["", "{}", r#"{"version": {"number": "6.8.1"}}"#] {
        let store = MockBulkServer::raw(move |_| (200, about.to_owned()));
        let answer = sink_on(&store).write(&plain(0, 1, 3)).await;
        assert!(matches!(&answer, Err(SinkError::Misconfigured(_))), "{about}: {answer:?}");
        assert_eq!(store.bulks().len(), 0, "another program gets nothing");
    }
}

#[tokio::test]
async fn too_large_request_is_split() {
    const BYTES_MAX: usize = 1_000;
    let store = MockBulkServer::start(|request| {
        let is_large = request.body.len() > BYTES_MAX;
        if is_large { (413, "<html>too large</html>".to_owned()) } else { all_stored(request) }
    });
    let long = format!("\"{}\"", "x".repeat(BYTES_MAX));
    let mut payloads = vec!["{\"status\": 200}"; 30];
    payloads[17] = &long;
    let batch = sink_testing::events::batch(0, 1, &payloads);
    let Ok(WriteOutcome::Partial { refused, retry }) = sink_on(&store).write(&batch).await else {
        panic!("one is too large")
    };
    assert_eq!((refused, retry.len(), retry[0].index, retry[0].scope), (Vec::new(), 1, 17, RetryScope::Unclear));
    assert!(retry[0].reason.contains("too large"), "{}", retry[0].reason);
    let mut stored: Vec<String> =
        store.bulks().iter().filter(|bulk| bulk.body.len() <= BYTES_MAX).flat_map(Request::ids).collect();
    stored.sort();
    let expected = (1..=30).filter(|sequence| *sequence != 18).map(|sequence| id(0, sequence).to_string());
    assert_eq!(stored, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    const IN_FLIGHT: usize = 3;
    let (gate, most) = (Arc::new((Mutex::new(false), Condvar::new())), Arc::new(AtomicUsize::new(0)));
    let (flying, arrived) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let (opened, seen, came) = (Arc::clone(&gate), Arc::clone(&most), Arc::clone(&arrived));
    let store = MockBulkServer::start(move |request| {
        let now = flying.fetch_add(1, Ordering::SeqCst) + 1;
        if seen.fetch_max(now, Ordering::SeqCst) < now && now == IN_FLIGHT {
            came.notify_one();
        }
        let (is_open, changed) = &*opened;
        drop(changed.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        flying.fetch_sub(1, Ordering::SeqCst);
        all_stored(request)
    });
    let config = ElasticsearchConfig {
        request_bytes: 1,
        requests_max: NonZeroUsize::new(IN_FLIGHT).unwrap(),
        ..config(&store.url(), "i")
    };
    let sink = sink(config);
    let writes = [0, 1].map(|shard| {
        let sink = sink.clone();
        tokio::spawn(async move { sink.write(&plain(shard, 1, 10)).await })
    });
    arrived.notified().await;
    // Further requests would have time to arrive.
    tokio::time::timeout(Duration::from_millis(300), std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(most.load(Ordering::SeqCst), IN_FLIGHT, "over all lanes");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    for write in writes {
        assert_eq!(write.await.unwrap(), Ok(WriteOutcome::Committed));
    }
    assert_eq!(most.load(Ordering::SeqCst), IN_FLIGHT, "and later");
    assert_eq!(store.bulks().len(), 20);
}

#[tokio::test]
async fn dead_node_is_skipped() {
    let away = free_address();
    let store = MockBulkServer::start(all_stored);
    let sink = sink(config(&format!("http://{away},{}", store.url()), "i"));
    for first in [1, 4, 7] {
        assert_eq!(sink.write(&plain(0, first, 3)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!(store.bulks().len(), 3);
}

#[tokio::test]
async fn silent_node_is_replaced_by_another() {
    let busy = MockBulkServer::start(|_| (503, String::new()));
    let store = MockBulkServer::start(all_stored);
    let sink = sink(config(&format!("{},{}", busy.url(), store.url()), "i"));
    let mut failed = 0;
    for first in [1, 4, 7, 10] {
        failed += usize::from(sink.write(&plain(0, first, 3)).await != Ok(WriteOutcome::Committed));
    }
    assert_eq!(failed, busy.bulks().len());
    assert!(failed <= 1, "{failed} of 4 failed");
}

#[tokio::test]
async fn requests_are_authenticated_and_compressed() {
    let store = MockBulkServer::start(|request| {
        let mut plain = request.clone();
        plain.body.clear();
        flate2::read::GzDecoder::new(&request.body[..]).read_to_end(&mut plain.body).unwrap();
        all_stored(&plain)
    });
    let url = store.url().replace("http://", "http://ann:s3cret@");
    let mut config = ElasticsearchConfig { gzip: true, ..config(&url, "i") };
    assert_eq!(sink(config.clone()).write(&plain(0, 1, 100)).await, Ok(WriteOutcome::Committed));
    config.api_key = ApiKey::new("TOPSECRET");
    assert_eq!(sink(config).write(&plain(0, 1, 100)).await, Ok(WriteOutcome::Committed));
    let heads: Vec<String> = store.bulks().into_iter().map(|bulk| bulk.head).collect();
    assert!(heads[0].contains("authorization: basic yw5uonmzy3jlda=="), "{}", heads[0]);
    assert!(heads[1].contains("authorization: apikey topsecret"), "{}", heads[1]);
    for head in heads {
        assert!(
            head.contains("content-encoding: gzip") && head.contains("content-type: application/x-ndjson"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn user_with_only_write_access_may_write() {
    let store =
        MockBulkServer::raw(|request| if request.is_bulk() { all_stored(request) } else { (403, String::new()) });
    assert_eq!(sink_on(&store).write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
    let store = MockBulkServer::raw(|_| (200, ABOUT.to_owned()));
    assert_eq!(sink_on(&store).connect().await, Ok(()));
}
