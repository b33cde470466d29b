//! Objects read back: they arrive byte for byte, are cached and revalidated.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use event::object::{FoundObject, Pieces};
use event::read::ReadError;
use objects::read::{ObjectCache, ObjectReads, ReadRules};
use objects::{Codec, ObjectSink};
use sink::Sink;
use testkit::swift::SwiftServer;

use super::{ContainerFixture, MakeSink};
use crate::events::{deliver, plain};

/// They ask the store once.
pub const RULES: ReadRules = ReadRules { revalidate: Duration::from_secs(3600), stale: Duration::ZERO };
/// They ask the store each time.
pub const ASKED: ReadRules = ReadRules { revalidate: Duration::ZERO, ..RULES };

/// Reads with a cache of 1 MiB.
#[must_use]
pub fn reads(sink: &Sink, rules: ReadRules) -> (ObjectReads, ObjectCache) {
    reads_with(sink, rules, 1 << 20)
}

fn reads_with(sink: &Sink, rules: ReadRules, cache_bytes: u64) -> (ObjectReads, ObjectCache) {
    let cache = ObjectCache::new(cache_bytes);
    (ObjectSink::of(sink).unwrap().reads("warehouse".into(), rules, cache.clone()), cache)
}

/// The bytes of an object as they arrive.
async fn given(reads: &ObjectReads, name: &str, found: &FoundObject, range: Range<u64>) -> Result<Vec<u8>, ReadError> {
    let mut pieces = reads.open(name, found, range).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = poll_fn(|context| pieces.poll_next(context)).await {
        bytes.extend(piece?);
    }
    Ok(bytes)
}

/// The counters: hits, misses, revalidated, stale, unknown, failed.
#[must_use]
pub fn counts(reads: &ObjectReads) -> [u64; 6] {
    let counters = reads.counters();
    [&counters.hits, &counters.misses, &counters.revalidated, &counters.stale, &counters.unknown, &counters.failed]
        .map(metrics::Counter::get)
}

/// An object that is read, cached, asked for again, changed and removed.
///
/// # Panics
/// If a read doesn't give what the store has.
pub async fn kept_and_asked_for_again(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::with(server, make_sink, Codec::Gzip);
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
    assert_eq!(counts(&asked), [0, 1, 1, 0, 0, 0]);
    let path = format!("/{}/{name}", fixture.container);
    assert!(server.client().ask("PUT", &path, &[], b"other").is_success());
    assert_eq!(asked.look(&name).await.unwrap().unwrap().content.as_deref(), Some(&b"other"[..]));
    assert!(server.client().ask("DELETE", &path, &[], b"").is_success());
    assert_eq!(asked.look(&name).await.unwrap(), None);
    drop(first);
    assert_eq!((counts(&asked), cache.bytes()), ([0, 2, 1, 0, 1, 0], 0));
    assert!(kept.look(&name).await.unwrap().is_some(), "it isn't asked for before its time");
}

/// An object that is too large for the cache.
///
/// # Panics
/// If its parts aren't those of one object.
pub async fn in_parts(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, make_sink);
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
        assert!(part == bytes[first..end], "{first} to {end}");
    }
    assert!(cache.bytes() < 2_000);
    assert_eq!((counts(&reads), reads.counters().fetched_bytes.get()), ([0, 1, 0, 0, 0, 0], all + 1 + 93 + 1));
    let path = format!("/{}/{name}", fixture.container);
    let other = vec![b'x'; bytes.len()];
    assert!(server.client().ask("PUT", &path, &[], &other).is_success());
    assert!(given(&reads, &name, &found, 0..all).await.is_err(), "parts of two objects");
    let found = reads.look(&name).await.unwrap().unwrap();
    assert_eq!(given(&reads, &name, &found, 0..all).await.unwrap(), other, "the store is asked again");
}
