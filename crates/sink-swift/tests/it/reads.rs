//! Objects read back: the sink returns, caches and revalidates them. An unreachable store, another object of the same
//! name, and names of other objects don't cause wrong bytes.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use event::read::ReadError;
use futures_util::FutureExt;
use futures_util::future::join_all;
use objects::read::ReadRules;
use sink_testing::containers::ContainerFixture;
use sink_testing::containers::reads::{self, ASKED, RULES, counts, reads};
use sink_testing::events::{deliver, plain};
use testkit::swift::SwiftServer;

use crate::answers;
use crate::fixture::sink_of;

#[tokio::test]
async fn read_object_is_cached_and_revalidated() {
    reads::kept_and_asked_for_again(sink_of).await;
}

#[tokio::test]
async fn large_object_has_no_parts_of_another() {
    reads::in_parts(sink_of).await;
}

#[tokio::test]
async fn stale_object_is_returned_while_allowed() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, sink_of);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 5)).await;
    let name = fixture.only_object();
    let (patient, _) = reads(&sink, ReadRules { stale: Duration::from_secs(3600), ..ASKED });
    let (strict, _) = reads(&sink, ASKED);
    let first = patient.look(&name).await.unwrap().unwrap();
    strict.look(&name).await.unwrap().unwrap();
    let cut = fixture.proxy.cut_after(0);
    assert!(Arc::ptr_eq(&first, &patient.look(&name).await.unwrap().unwrap()));
    let Err(ReadError::Unavailable(reason)) = strict.look(&name).await else { panic!("the store was cut off") };
    assert!(reason.contains(&fixture.container), "{reason}");
    assert_eq!((counts(&patient), counts(&strict)), ([0, 1, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1]));
    drop(cut);
    strict.look(&name).await.unwrap().unwrap();
    assert_eq!(counts(&strict), [0, 1, 1, 0, 0, 1]);
}

#[tokio::test]
async fn thousand_concurrent_reads_fetch_once() {
    let (let_go, wait) = channel::<()>();
    let (mock_server, sink) = answers::swift(move |_| {
        wait.recv().unwrap();
        (200, vec![("ETag", "abc".to_owned()), ("Content-Type", "image/png".to_owned())], b"image".to_vec())
    });
    let name = format!("warehouse-20261121T130000Z-{}-0000-00000000000000000001.ndjson", "ab".repeat(16));
    let (reads, _) = reads(&sink, RULES);
    let mut all = Box::pin(join_all((0..1_000).map(|_| reads.look(&name))));
    assert!((&mut all).now_or_never().is_none());
    let_go.send(()).unwrap();
    let answers = all.await;
    assert!(answers.iter().all(|found| found.as_ref().unwrap().as_ref().unwrap().content.as_deref() == Some(b"image")));
    assert_eq!(mock_server.methods().len(), 2, "a token and the object");
    assert_eq!((counts(&reads), reads.counters().joined.get()), ([0, 1, 0, 0, 0, 0], 999));
    assert!(reads.look(&name).now_or_never().is_some(), "it is kept");
}

#[tokio::test]
async fn names_of_other_objects_are_not_requested() {
    let (mock_server, sink) = answers::swift(|_| (200, vec![("ETag", "abc".to_owned())], b"secret".to_vec()));
    let (reads, _) = reads(&sink, RULES);
    for name in ["", "secret", "../other/secret", "%2e%2e/other/secret", "a/../../b", "warehouse", "warehouse.ndjson"] {
        assert_eq!(reads.look(name).await.unwrap(), None, "{name}");
    }
    assert!(mock_server.asked().is_empty());
    assert_eq!(counts(&reads), [0, 0, 0, 0, 7, 0]);
}

#[tokio::test]
async fn cancelled_read_does_not_cancel_others() {
    let (let_go, wait) = channel::<()>();
    let (mock_server, sink) = answers::swift(move |_| {
        wait.recv().unwrap();
        (200, vec![("ETag", "abc".to_owned())], b"image".to_vec())
    });
    let name = format!("warehouse-20261121T130000Z-{}-0000-00000000000000000001.ndjson", "ab".repeat(16));
    let (reads, _) = reads(&sink, RULES);
    let mut first = Box::pin(reads.look(&name));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(reads.look(&name));
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    let_go.send(()).unwrap();
    assert_eq!(second.await.unwrap().unwrap().content.as_deref(), Some(&b"image"[..]));
    assert_eq!(mock_server.methods().len(), 2, "a token and the object");
}

#[tokio::test]
async fn inconsistent_response_is_an_error() {
    let name = format!("warehouse-20261121T130000Z-{}-0000-00000000000000000001.ndjson", "ab".repeat(16));
    for (headers, body) in [
        (vec![("ETag", "W/\"abc\"".to_owned())], &b"image"[..]),
        (vec![], b"image"),
        (vec![("ETag", "abc".to_owned()), ("Content-Length", "9".to_owned())], b"image"),
    ] {
        let shown = format!("{headers:?}");
        let (_mock_server, sink) = answers::swift(move |_| (200, headers.clone(), body.to_vec()));
        let (reads, cache) = reads(&sink, RULES);
        assert!(matches!(reads.look(&name).await, Err(ReadError::Unavailable(_))), "{shown}");
        assert_eq!((counts(&reads), cache.bytes()), ([0, 0, 0, 0, 0, 1], 0), "{shown}");
    }
}
