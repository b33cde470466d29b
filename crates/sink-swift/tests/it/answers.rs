//! Responses that the real server doesn't give on demand: a digest of other bytes, a server that is busy or full, a
//! name that exists without an object. The real server is tested in addition.

use std::collections::HashMap;

use objects::Codec;
use sink::{Sink, SinkError, WriteOutcome};
use sink_testing::containers::rules;
use sink_testing::events::plain;

use testkit::mock_server::{MockRequest, MockResponse, MockServer};

use crate::fixture::{config, tempauth};

const DIGEST: &str = "ffffffffffffffffffffffffffffffff";

fn status(status: u16) -> MockResponse {
    (status, Vec::new(), Vec::new())
}

fn tagged(status: u16, digest: &str, body: &[u8]) -> MockResponse {
    (status, vec![("ETag", digest.to_owned())], body.to_vec())
}

/// A Swift that issues tokens and has the container; `answer` returns the other responses.
pub(crate) fn fake_swift(mut answer: impl FnMut(&MockRequest) -> MockResponse + Send + 'static) -> MockServer {
    MockServer::start(move |asked| match asked.path.as_str() {
        "/auth/v1.0" => {
            let url = format!("http://{}/v1/AUTH_test", asked.header("Host").unwrap());
            (200, vec![("X-Auth-Token", "t".to_owned()), ("X-Storage-Url", url)], Vec::new())
        }
        "/v1/AUTH_test/events" => status(204),
        _ => answer(asked),
    })
}

/// The same, and a sink of small objects into it.
pub(crate) fn swift(answer: impl FnMut(&MockRequest) -> MockResponse + Send + 'static) -> (MockServer, Sink) {
    let mock_server = fake_swift(answer);
    let sink = sink_swift::sink(config(tempauth(mock_server.address, "test:tester"), "events", rules(Codec::None, "")));
    (mock_server, sink)
}

async fn unavailable(sink: &Sink) -> String {
    let answer = sink.write(&plain(0, 1, 5)).await;
    let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    reason.to_string()
}

async fn misconfigured(sink: &Sink) -> String {
    let answer = sink.write(&plain(0, 1, 5)).await;
    let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{answer:?}") };
    reason.to_string()
}

#[tokio::test]
async fn other_digest_is_trusted_only_with_equal_bytes() {
    // It has another object: it returns the same digest each time, and other bytes.
    let (mock_server, sink) = swift(|asked| match asked.method.as_str() {
        "PUT" => tagged(201, DIGEST, b""),
        _ => tagged(200, DIGEST, b"damaged"),
    });
    assert!(misconfigured(&sink).await.contains("stored other bytes"));
    let put = mock_server.asked().into_iter().find(|asked| asked.method == "PUT").unwrap();
    assert_eq!((put.header("If-None-Match"), put.header("ETag").map(str::len)), (Some("*"), Some(32)));
    // With the same length, only reading it shows the difference.
    let mut stored: HashMap<String, Vec<u8>> = HashMap::new();
    let (mock_server, sink) = swift(move |asked| match asked.method.as_str() {
        "PUT" => {
            let mut body = asked.body.clone();
            body[0] ^= 1;
            stored.insert(asked.path.clone(), body);
            tagged(201, DIGEST, b"")
        }
        _ => tagged(200, DIGEST, &stored[&asked.path]),
    });
    assert!(misconfigured(&sink).await.contains("stored other bytes"));
    assert!(mock_server.methods().contains(&"GET".to_owned()));
    // A service that encrypts returns another digest, and the original bytes.
    let mut stored: HashMap<String, Vec<u8>> = HashMap::new();
    let (mock_server, sink) = swift(move |asked| match asked.method.as_str() {
        "PUT" => {
            stored.insert(asked.path.clone(), asked.body.clone());
            tagged(201, DIGEST, b"")
        }
        _ => tagged(200, DIGEST, &stored[&asked.path]),
    });
    assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    assert_eq!(mock_server.methods().iter().filter(|method| *method == "GET").count(), 3, "a token and two objects");
}

#[tokio::test]
async fn temporary_rejections_differ_from_final_ones() {
    for code in [408, 409, 413, 422, 429, 498, 499, 500, 503, 507] {
        let (_, sink) = swift(move |_| (code, Vec::new(), b"<h1>because</h1>".to_vec()));
        let reason = unavailable(&sink).await;
        assert!(reason.contains(&code.to_string()) && reason.contains("because"), "{reason}");
    }
    for code in [301, 400, 401, 403, 405] {
        let (_, sink) = swift(move |_| status(code));
        misconfigured(&sink).await;
    }
    // Requested once more with another token, and then not again.
    let (mock_server, sink) = swift(|_| status(401));
    misconfigured(&sink).await;
    assert_eq!(mock_server.methods(), ["GET", "PUT", "GET", "PUT"]);
}

#[tokio::test]
async fn name_without_an_object_is_no_proof() {
    let (_, sink) = swift(|asked| status(if asked.method == "PUT" { 412 } else { 404 }));
    assert!(unavailable(&sink).await.contains("retries"));
}

#[tokio::test]
async fn response_without_token_or_url_is_invalid() {
    for headers in [vec![], vec![("X-Auth-Token", "t".to_owned())]] {
        let mock_server = MockServer::start(move |_| (200, headers.clone(), Vec::new()));
        let config = config(tempauth(mock_server.address, "test:tester"), "events", rules(Codec::None, ""));
        assert!(misconfigured(&sink_swift::sink(config)).await.contains("lacks X-"));
    }
}

#[tokio::test]
async fn wrong_auth_url_is_reported() {
    for (code, is_final) in [(404, true), (405, true), (300, true), (403, true), (503, false), (429, false)] {
        let mock_server = MockServer::start(move |_| status(code));
        let auth = tempauth(mock_server.address, "test:tester");
        let config = config(auth.clone(), "events", rules(Codec::None, ""));
        let sink = sink_swift::sink(config);
        let reason = if is_final { misconfigured(&sink).await } else { unavailable(&sink).await };
        assert!(reason.contains(&auth.url().to_string()) && !reason.contains("is gone"), "{reason}");
        assert!(reason.contains("token"), "{reason}");
    }
}
