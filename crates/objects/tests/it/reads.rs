//! Objects read back: what the store has comes byte for byte, is kept and asked for again, and a store that is away, another object
//! under the name, and names of others give nothing wrong.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use event::object::{FoundObject, Pieces};
use event::read::ReadError;
use futures_util::FutureExt;
use futures_util::future::join_all;
use objects::read::{ObjectCache, ObjectReads, ReadRules};
use objects::{Codec, ObjectSink};
use sink::Sink;

use crate::answers;
use crate::fixture::{BOTH, Fixture, Protocol, server};
use sink_testing::events::{deliver, plain};

const RULES: ReadRules = ReadRules { revalidate: Duration::from_secs(3600), stale: Duration::ZERO };
/// Each time.
const ASKED: ReadRules = ReadRules { revalidate: Duration::ZERO, ..RULES };

fn reads(sink: &Sink, rules: ReadRules) -> (ObjectReads, ObjectCache) {
    reads_with(sink, rules, 1 << 20)
}

fn reads_with(sink: &Sink, rules: ReadRules, cache_bytes: u64) -> (ObjectReads, ObjectCache) {
    let cache = ObjectCache::new(cache_bytes);
    (ObjectSink::of(sink).unwrap().reads("warehouse".into(), rules, cache.clone()), cache)
}

/// Bytes of an object as they come.
async fn given(reads: &ObjectReads, name: &str, found: &FoundObject, range: Range<u64>) -> Result<Vec<u8>, ReadError> {
    let mut pieces = reads.open(name, found, range).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = poll_fn(|context| pieces.poll_next(context)).await {
        bytes.extend(piece?);
    }
    Ok(bytes)
}

/// Hits, misses, revalidated, stale, unknown, failed.
fn counts(reads: &ObjectReads) -> [u64; 6] {
    let counters = reads.counters();
    [&counters.hits, &counters.misses, &counters.revalidated, &counters.stale, &counters.unknown, &counters.failed]
        .map(event::cells::Counter::get)
}

#[tokio::test]
async fn what_the_store_has_is_given_kept_and_asked_for_again() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = Fixture::with(server, protocol, Codec::Gzip);
        let sink = fixture.sink();
        deliver(&sink, &plain(0, 1, 50)).await;
        let name = fixture.only_object();
        let bytes = server.client().get(&fixture.container, &name).unwrap();
        let (kept, cache) = reads(&sink, RULES);
        let found = kept.look(&name).await.unwrap().unwrap();
        assert_eq!((found.content.as_deref(), &*found.content_type), (Some(&*bytes), "application/gzip"));
        assert_eq!((found.bytes, found.etag.len()), (bytes.len() as u64, 34), "{}", found.etag);
        assert!(Arc::ptr_eq(&found, &kept.look(&name).await.unwrap().unwrap()));
        assert_eq!(counts(&kept), [1, 1, 0, 0, 0, 0]);
        assert_eq!(kept.counters().fetched_bytes.get(), found.bytes);
        assert!(cache.bytes() > found.bytes && cache.bytes() < found.bytes + 1000);
        // The store says that it is still the same, and later that it is gone.
        let (asked, cache) = reads(&sink, ASKED);
        let first = asked.look(&name).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &asked.look(&name).await.unwrap().unwrap()));
        assert_eq!(counts(&asked), [0, 1, 1, 0, 0, 0], "{protocol:?}");
        let path = format!("/{}/{name}", fixture.container);
        assert!(server.client().ask("PUT", &path, &[], b"other").is_success());
        assert_eq!(asked.look(&name).await.unwrap().unwrap().content.as_deref(), Some(&b"other"[..]));
        assert!(server.client().ask("DELETE", &path, &[], b"").is_success());
        assert_eq!(asked.look(&name).await.unwrap(), None);
        drop(first);
        assert_eq!((counts(&asked), cache.bytes()), ([0, 2, 1, 0, 1, 0], 0));
        assert!(kept.look(&name).await.unwrap().is_some(), "it isn't asked for before its time");
    }
}

#[tokio::test]
async fn a_large_object_comes_in_parts_and_not_of_another() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = Fixture::new(server, protocol);
        let sink = fixture.sink();
        deliver(&sink, &plain(0, 1, 50)).await;
        let name = fixture.only_object();
        let bytes = server.client().get(&fixture.container, &name).unwrap();
        let (reads, cache) = reads_with(&sink, RULES, 2_000);
        let found = reads.look(&name).await.unwrap().unwrap();
        let all = bytes.len() as u64;
        assert_eq!((&found.content, found.bytes), (&None, all));
        for (first, end) in [(0, all), (0, 1), (7, 100), (all - 1, all)] {
            let part = given(&reads, &name, &found, first..end).await.unwrap();
            let [first, end] = [first, end].map(|at| usize::try_from(at).unwrap());
            assert!(part == bytes[first..end], "{protocol:?} {first} to {end}");
        }
        assert!(cache.bytes() < 2_000);
        assert_eq!((counts(&reads), reads.counters().fetched_bytes.get()), ([0, 1, 0, 0, 0, 0], all + 1 + 93 + 1));
        let path = format!("/{}/{name}", fixture.container);
        let other = vec![b'x'; bytes.len()];
        assert!(server.client().ask("PUT", &path, &[], &other).is_success());
        assert!(given(&reads, &name, &found, 0..all).await.is_err(), "{protocol:?}: parts of two objects");
        let found = reads.look(&name).await.unwrap().unwrap();
        assert_eq!(given(&reads, &name, &found, 0..all).await.unwrap(), other, "{protocol:?}: it is asked for anew");
    }
}

#[tokio::test]
async fn a_store_that_is_away_gives_what_is_kept_for_as_long_as_it_may() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, Protocol::Swift);
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
async fn a_thousand_who_ask_at_once_ask_the_store_once() {
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
async fn names_of_others_are_not_asked_for() {
    let (mock_server, sink) = answers::swift(|_| (200, vec![("ETag", "abc".to_owned())], b"secret".to_vec()));
    let (reads, _) = reads(&sink, RULES);
    for name in ["", "secret", "../other/secret", "%2e%2e/other/secret", "a/../../b", "warehouse", "warehouse.ndjson"] {
        assert_eq!(reads.look(name).await.unwrap(), None, "{name}");
    }
    assert!(mock_server.asked().is_empty());
    assert_eq!(counts(&reads), [0, 0, 0, 0, 7, 0]);
}

#[tokio::test]
async fn who_leaves_takes_no_answer_from_those_who_stay() {
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
async fn an_answer_that_is_not_what_it_says_is_none() {
    let name = format!("warehouse-20261121T130000Z-{}-0000-00000000000000000001.ndjson", "ab".repeat(16));
    for (headers, body) in [
        (vec![("ETag", "W/\"abc\"".to_owned())], &b"image"[..]),
        (vec![], b"image"),
        (vec![("ETag", "abc".to_owned()), ("Content-Length", "9".to_owned())], b"image"),
    ] {
        let shown = format!("{headers:?}");
        let (_stand_in, sink) = answers::swift(move |_| (200, headers.clone(), body.to_vec()));
        let (reads, cache) = reads(&sink, RULES);
        assert!(matches!(reads.look(&name).await, Err(ReadError::Unavailable(_))), "{shown}");
        assert_eq!((counts(&reads), cache.bytes()), ([0, 0, 0, 0, 0, 1], 0), "{shown}");
    }
}
