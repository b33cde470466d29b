//! The outcomes of messages that a receiver doesn't accept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sink::{RetryScope, Sink, SinkError, WriteOutcome};
use tokio::time::Instant;

use crate::{config, sink};
use sink_testing::events::plain;
use testkit::mock_server::{MockResponse, MockServer};
use testkit::ports::free_address;

fn answer(status: u16) -> MockResponse {
    (status, Vec::new(), b"some words".to_vec())
}

fn sink_to(receiver: &MockServer) -> Sink {
    sink(config(&format!("http://{}/", receiver.address)))
}

#[tokio::test]
async fn rejected_message_does_not_delay_others() {
    let receiver = MockServer::start(|asked| match asked.header("webhook-id").unwrap().chars().last() {
        Some('3') => answer(422),
        Some('5') => answer(500),
        _ => answer(204),
    });
    let Ok(WriteOutcome::Partial { refused, retry }) = sink_to(&receiver).write(&plain(0, 1, 8)).await else {
        panic!("two")
    };
    assert_eq!(refused, [], "delivery decides");
    let scopes: Vec<_> = retry.iter().map(|retry| (retry.index, retry.scope)).collect();
    assert_eq!(scopes, [(2, RetryScope::Unclear), (4, RetryScope::Record)]);
    assert!(retry[0].reason.contains("422") && retry[0].reason.contains("some words"), "{}", retry[0].reason);
    assert_eq!(receiver.asked().len(), 8);
}

#[tokio::test]
async fn receiver_that_is_down_gets_few_requests() {
    for (status, acts) in [(429, false), (503, false), (502, false), (301, true), (401, true), (404, true), (410, true)]
    {
        let receiver = MockServer::start(move |_| answer(status));
        match sink_to(&receiver).write(&plain(0, 1, 1_000)).await {
            Err(SinkError::Unavailable(reason)) => {
                assert!(!acts && reason.contains("some words"), "{status}: {reason}")
            }
            Err(SinkError::Misconfigured(reason)) => {
                assert!(acts && reason.contains("some words"), "{status}: {reason}")
            }
            other => panic!("{status}: {other:?}"),
        }
        assert!(receiver.asked().len() <= 4, "those in flight");
    }
    let closed = free_address();
    let sink = sink(config(&format!("http://{closed}/s3cret")));
    let Err(SinkError::Unavailable(reason)) = sink.write(&plain(0, 1, 3)).await else { panic!("nothing listens") };
    assert!(reason.contains(&closed.to_string()) && !reason.contains("s3cret"), "{reason}");
}

#[tokio::test]
async fn receiver_that_rejects_everything_rejects_no_message() {
    let rejects_all = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&rejects_all);
    let receiver = MockServer::start(move |asked| {
        let is_bad = asked.header("webhook-id").unwrap().ends_with('2');
        answer(if is_bad || switch.load(Ordering::Relaxed) { 400 } else { 204 })
    });
    let (sink, batch) = (sink_to(&receiver), plain(0, 1, 3));
    let Ok(WriteOutcome::Partial { refused, retry }) = sink.write(&batch).await else { panic!("none is accepted") };
    assert_eq!(refused, []);
    assert!(retry.len() == 3 && retry.iter().all(|retry| retry.scope == RetryScope::Unclear), "{retry:?}");
    rejects_all.store(false, Ordering::Relaxed);
    let Ok(WriteOutcome::Partial { refused, retry }) = sink.write(&batch).await else { panic!("one is bad") };
    assert_eq!((refused, retry.len(), retry[0].index), (Vec::new(), 1, 1));
}

#[tokio::test]
async fn accepted_messages_are_not_resent_after_an_outage() {
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let receiver =
        MockServer::start(move |_| answer(if asked.fetch_add(1, Ordering::Relaxed) < 10 { 200 } else { 503 }));
    let batch = plain(0, 1, 30);
    let Ok(WriteOutcome::Partial { refused, retry }) = sink_to(&receiver).write(&batch).await else {
        panic!("ten were accepted")
    };
    assert_eq!((refused.len(), retry.len()), (0, 20));
    assert!(retry[0].reason.contains("503"), "{}", retry[0].reason);
    assert!(count.load(Ordering::Relaxed) <= 14);
}

#[tokio::test]
async fn requested_pause_is_respected() {
    let count = AtomicUsize::new(0);
    let receiver = MockServer::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => (429, vec![("Retry-After", "1".to_owned())], Vec::new()),
        _ => answer(200),
    });
    let (sink, batch) = (sink_to(&receiver), plain(0, 1, 1));
    assert!(matches!(sink.write(&batch).await, Err(SinkError::Unavailable(_))));
    let begun = Instant::now();
    assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn receivers_message_is_escaped_in_errors() {
    let words = "\u{1b}[2J\u{9b}31m\nforged \u{202e}txt";
    for (status, is_refused) in [(422, true), (503, false)] {
        let receiver = MockServer::start(move |_| (status, Vec::new(), words.as_bytes().to_vec()));
        let said = match sink_to(&receiver).write(&plain(0, 1, 1)).await {
            Ok(WriteOutcome::Partial { retry, .. }) if is_refused => retry[0].reason.to_string(),
            Err(error) if !is_refused => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(said.contains("\\u001b[2J\\u009b31m forged \\u202etxt"), "{said:?}");
        assert!(!said.chars().any(char::is_control), "{said:?}");
    }
}
