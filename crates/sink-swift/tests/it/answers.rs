//! Answers that the real server doesn't give when it is asked to, each beside a test of the real one: a digest of other bytes, a server that is busy or
//! full, a name that is taken by nothing.

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

/// What a Swift answers that gives tokens and has the container; `answer` says the rest.
pub(crate) fn swift_stand_in(mut answer: impl FnMut(&MockRequest) -> MockResponse + Send + 'static) -> MockServer {
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
    let mock_server = swift_stand_in(answer);
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
async fn a_digest_of_other_bytes_is_believed_only_when_the_bytes_are_right() {
    // It holds something else: the same digest is said each time, and other bytes are given.
    let (mock_server, sink) = swift(|asked| match asked.method.as_str() {
        "PUT" => tagged(201, DIGEST, b""),
        _ => tagged(200, DIGEST, b"damaged"),
    });
    assert!(misconfigured(&sink).await.contains("other bytes than were sent"));
    let put = mock_server.asked().into_iter().find(|asked| asked.method == "PUT").unwrap();
    assert_eq!((put.header("If-None-Match"), put.header("ETag").map(str::len)), (Some("*"), Some(32)));
    // Of the same length only reading it tells.
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
    assert!(misconfigured(&sink).await.contains("other bytes than were sent"));
    assert!(mock_server.methods().contains(&"GET".to_owned()));
    // A service that encrypts names another digest, and gives back what it was given.
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
async fn refusals_that_may_pass_are_told_from_those_that_a_person_must_end() {
    for code in [408, 409, 413, 422, 429, 498, 499, 500, 503, 507] {
        let (_, sink) = swift(move |_| (code, Vec::new(), b"<h1>because</h1>".to_vec()));
        let reason = unavailable(&sink).await;
        assert!(reason.contains(&code.to_string()) && reason.contains("because"), "{reason}");
    }
    for code in [301, 400, 401, 403, 405] {
        let (_, sink) = swift(move |_| status(code));
        misconfigured(&sink).await;
    }
    // Asked once more with another token, and then no more.
    let (mock_server, sink) = swift(|_| status(401));
    misconfigured(&sink).await;
    assert_eq!(mock_server.methods(), ["GET", "PUT", "GET", "PUT"]);
}

#[tokio::test]
async fn a_name_that_is_taken_by_nothing_is_no_proof() {
    let (_, sink) = swift(|asked| status(if asked.method == "PUT" { 412 } else { 404 }));
    assert!(unavailable(&sink).await.contains("tried again"));
}

#[tokio::test]
async fn an_answer_without_a_token_or_a_url_is_no_answer() {
    for headers in [vec![], vec![("X-Auth-Token", "t".to_owned())]] {
        let mock_server = MockServer::start(move |_| (200, headers.clone(), Vec::new()));
        let config = config(tempauth(mock_server.address, "test:tester"), "events", rules(Codec::None, ""));
        assert!(misconfigured(&sink_swift::sink(config)).await.contains("left out X-"));
    }
}

#[tokio::test]
async fn a_wrong_auth_url_is_named() {
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
