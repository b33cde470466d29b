//! Large objects: the number of requests, and what a failed attempt leaves for the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use limits::OBJECT_KEPT_BYTES_MAX;
use objects::{Codec, ObjectFormat, ObjectSink};
use sink::SinkError;
use sink_swift::SwiftConfig;

use crate::answers::fake_swift;
use crate::fixture::{self, sink_of, tempauth};
use sink_testing::containers::large::{self, Events, large, large_rules, manifest_of};
use sink_testing::containers::rules;
use testkit::mock_server::{MockResponse, MockServer};

fn object_sink(config: SwiftConfig) -> ObjectSink {
    ObjectSink::of(&sink_swift::sink(config)).unwrap().clone()
}

fn config(mock_server: &MockServer) -> SwiftConfig {
    fixture::config(tempauth(mock_server.address, "test:tester"), "events", large_rules(Codec::None))
}

/// The methods of requests for objects, without those for tokens.
fn methods(mock_server: &MockServer) -> Vec<String> {
    let asked = mock_server.asked().into_iter().filter(|asked| !asked.path.starts_with("/auth"));
    asked.map(|asked| asked.method).collect()
}

/// A store that may lose the response to the first PUT that it has accepted.
fn stored(loses_one: bool) -> MockServer {
    let stored: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
    let mut loses = loses_one;
    fake_swift(move |asked| -> MockResponse {
        let mut stored = stored.lock().unwrap();
        match asked.method.as_str() {
            "PUT" if asked.header("If-None-Match").is_some() && stored.contains_key(&asked.path) => {
                (412, Vec::new(), Vec::new())
            }
            "PUT" => {
                stored.insert(asked.path.clone(), asked.body.clone());
                let tag = asked.header("ETag").unwrap_or_default().to_owned();
                let status = if std::mem::take(&mut loses) { 503 } else { 201 };
                (status, vec![("ETag", tag)], Vec::new())
            }
            _ => match stored.get(&asked.path) {
                Some(body) => (200, vec![("Content-Length", body.len().to_string())], body.clone()),
                None => (404, Vec::new(), Vec::new()),
            },
        }
    })
}

#[tokio::test]
async fn large_object_is_checked_before_it_is_sent() {
    let (batch, mock_server) = (large(), stored(false));
    let store = object_sink(config(&mock_server));
    let manifest = manifest_of(&batch, &store.rules());
    store.put(&manifest, Events::of(&batch)).await.map(drop).unwrap();
    assert_eq!(methods(&mock_server), ["HEAD", "PUT", "PUT"], "the object and its manifest");
    let mock_server = stored(true);
    let store = object_sink(config(&mock_server));
    let first = store.put(&manifest, Events::of(&batch)).await;
    assert!(matches!(first, Err(SinkError::Unavailable(_))));
    store.put(&manifest, Events::of(&batch)).await.map(drop).unwrap();
    assert_eq!(
        methods(&mock_server)[..3],
        ["HEAD", "PUT", "HEAD"],
        "the next attempt checks before it resends the bytes"
    );
}

/// With its bytes kept in memory, or encoded again.
#[tokio::test]
async fn bytes_are_resent_if_the_container_was_missing() {
    for (codec, is_kept) in Codec::ALL.into_iter().flat_map(|codec| [(codec, true), (codec, false)]) {
        let mut is_away = true;
        let mock_server = fake_swift(move |asked| match asked.header("ETag") {
            _ if asked.method == "PUT" && std::mem::take(&mut is_away) => (404, Vec::new(), Vec::new()),
            _ if asked.method == "HEAD" && !asked.path.ends_with("/events") => (404, Vec::new(), Vec::new()),
            tag => (201, vec![("ETag", tag.unwrap_or_default().to_owned())], Vec::new()),
        });
        // Room for only one byte: then nothing is kept.
        let bytes_max = if is_kept { u64::from(OBJECT_KEPT_BYTES_MAX) } else { 1 };
        let config = SwiftConfig { rules: ObjectFormat { bytes_max, ..rules(codec, "") }, ..config(&mock_server) };
        let store = object_sink(config);
        let batch = large();
        let manifest = manifest_of(&batch, &store.rules());
        store.put(&manifest, Events::of(&batch)).await.map(drop).unwrap();
        let asked = mock_server.asked();
        let is_object =
            |asked: &&testkit::mock_server::MockRequest| asked.method == "PUT" && asked.path.ends_with(&manifest.name);
        let bodies: Vec<&Vec<u8>> = asked.iter().filter(is_object).map(|asked| &asked.body).collect();
        let [first, second] = bodies[..] else { panic!("{codec}: {} requests", bodies.len()) };
        assert!(first == second && !first.is_empty(), "{codec}: {} and {} bytes", first.len(), second.len());
    }
}

#[tokio::test]
async fn existing_large_object_is_left_unchanged() {
    large::found_again(sink_of).await;
}
