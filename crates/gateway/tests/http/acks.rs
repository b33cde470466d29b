//! `Forebay-Ack`: the state of events when their request is answered.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use event::EventId;
use eventlog::{DeadLetterReason, DeliveryStatusSource, PendingLane, RejectedEvent, Rejections, WatchRequest};
use gateway::{ErrorCode, GatewayOptions, GatewayTypes, TypeRules};
use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture, named_types};

const STORED: &str = "Forebay-Ack: stored\r\n";
const MEMORY: &str = "Forebay-Ack: memory\r\n";
const JSON: &str = "Accept: application/json\r\n";

/// Simulates delivery: every event goes to all of its sinks.
#[derive(Default)]
struct Store {
    /// Names and cursors.
    sinks: Mutex<Vec<(&'static str, u64)>>,
    refused: Mutex<Vec<RejectedEvent>>,
    asked: Mutex<Vec<WatchRequest>>,
}

impl DeliveryStatusSource for Store {
    fn pending(&self, asked: &WatchRequest) -> Vec<PendingLane> {
        self.asked.lock().unwrap().push(asked.clone());
        let last = asked.spans.iter().map(|span| span.last).max().unwrap();
        let sinks = self.sinks.lock().unwrap();
        let behind = sinks.iter().filter(|(_, cursor)| *cursor < last);
        behind.map(|(sink, _)| PendingLane { sink: (*sink).into(), shard: 0, until: Some(last) }).collect()
    }

    fn may_have_rejected(&self) -> bool {
        !self.refused.lock().unwrap().is_empty()
    }

    fn rejected(&self, _: &WatchRequest, limit: usize) -> Rejections {
        let refused = self.refused.lock().unwrap();
        let listed = refused.iter().take(limit).cloned().collect();
        Rejections { listed, count: refused.len() as u64, unknown: Vec::new() }
    }
}

struct Harness {
    fixture: Fixture,
    store: Arc<Store>,
    _witness: Arc<dyn DeliveryStatusSource>,
}

impl Harness {
    fn new(ack_timeout: Duration) -> Self {
        let options = GatewayOptions { ack_timeout, tick: Duration::from_millis(5), ..GatewayOptions::default() };
        let fixture = Fixture::with(types(), options);
        let store = Arc::<Store>::default();
        let witness: Arc<dyn DeliveryStatusSource> = store.clone();
        fixture.log.delivery_watch().set_source(&witness);
        Self { fixture, store, _witness: witness }
    }

    /// One whose clients wait for longer than any test.
    fn patient() -> Self {
        Self::new(Duration::from_hours(1))
    }

    fn sinks(&self, sinks: &[(&'static str, u64)]) {
        *self.store.sinks.lock().unwrap() = sinks.to_vec();
        sinks.iter().for_each(|(sink, cursor)| self.fixture.log.delivery_watch().advance(sink, 0, *cursor));
    }

    fn wait_for(&self, waiting: usize) {
        self.fixture.wait("as many wait", |_| self.fixture.log.delivery_watch().waiting() == waiting);
    }

    fn last_asked(&self) -> WatchRequest {
        self.store.asked.lock().unwrap().last().unwrap().clone()
    }
}

/// The type `event` has ids, `quick` may be answered from memory, `careful` is answered when it is stored.
fn types() -> GatewayTypes {
    let mut types =
        named_types(&[("event", Some("/id")), ("a", None), ("b", None), ("quick", None), ("careful", None)]);
    types.type_pointer = Some("/t".parse().unwrap());
    let quick = TypeRules { ack_memory: true, ..TypeRules::default() };
    types.named.insert(event::TypeName::new("quick").unwrap(), quick);
    let careful = TypeRules { ack_stored: true, ..TypeRules::default() };
    types.named.insert(event::TypeName::new("careful").unwrap(), careful);
    types
}

fn pending(answer: &Answer) -> Value {
    answer.json()["pending"].clone()
}

#[test]
fn ack_header_has_three_values_and_occurs_once() {
    let harness = Harness::patient();
    for (headers, status) in [
        ("Forebay-Ack: disk\r\n", 200),
        ("forebay-ack:  STORED \r\n", 200),
        ("Forebay-Ack: both\r\n", 400),
        ("Forebay-Ack: \r\n", 400),
        ("Forebay-Ack: disk\r\nForebay-Ack: disk\r\n", 400),
    ] {
        for path in ["/ingest/event/a", "/ingest/batch/a"] {
            let answer = harness.fixture.post(path, headers, "1");
            assert_eq!(answer.status, status, "{headers}");
            assert!(status == 200 || answer.code() == "bad_request");
        }
    }
}

#[test]
fn stored_event_gets_the_usual_response() {
    let harness = Harness::patient();
    let answer = harness.fixture.post("/ingest/event/a", STORED, "1");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let answer = harness.fixture.post("/ingest/event/a", &[STORED, JSON].concat(), "2");
    assert_eq!((&answer.json()["position"], &answer.json()["duplicate"]), (&json!("0:2"), &json!(false)));
    let answer = harness.fixture.post("/ingest/batch/a", STORED, "3\nx\n");
    assert_eq!((answer.status, &answer.json()["accepted"], pending(&answer)), (207, &json!(1), Value::Null));
    assert_eq!(harness.fixture.post("/ingest/batch/a", STORED, "x\n").status, 400);
}

#[test]
fn ack_stored_waits_for_the_last_sink() {
    let harness = Harness::patient();
    harness.sinks(&[("one", 0), ("two", 0)]);
    for (path, body, status) in
        [("/ingest/event/a", "1", 200), ("/ingest/batch/a", "2\n3\n", 200), ("/ingest/batch/a", "4\nx\n", 207)]
    {
        let mut client = harness.fixture.connect();
        client.post(path, STORED, body.as_bytes());
        harness.wait_for(1);
        let in_flight = harness.fixture.counters().bytes_in_flight();
        assert_eq!(in_flight > 0, status == 207, "of what waits only a refusal is in flight: {in_flight}");
        let last = harness.fixture.log.shards()[0].durable();
        harness.sinks(&[("one", last), ("two", last - 1)]);
        // It waits for the other.
        harness.wait_for(1);
        harness.sinks(&[("one", last), ("two", last)]);
        assert_eq!(client.answer().status, status);
        assert_eq!(harness.fixture.log.delivery_watch().waiting(), 0);
    }
}

#[test]
fn ack_timeout_names_the_pending_sinks() {
    let harness = Harness::new(Duration::from_millis(10));
    harness.sinks(&[("one", 0), ("two", 99)]);
    let answer = harness.fixture.post("/ingest/event/a", STORED, "1");
    assert_eq!((answer.status, pending(&answer)), (202, json!(["one"])));
    assert_eq!((&answer.json()["position"], &answer.json()["duplicate"]), (&json!("0:1"), &json!(false)));
    let answer = harness.fixture.post("/ingest/batch/a", STORED, "1\n2\n");
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json(), json!({"accepted": 2, "duplicates": 0, "refused": [], "pending": ["one"]}));
    let answer = harness.fixture.post("/ingest/batch/a", STORED, "1\nx\n");
    assert_eq!((answer.status, pending(&answer)), (207, json!(["one"])), "the status shows the rejection first");
    assert_eq!(harness.fixture.log.delivery_watch().waiting(), 0, "no waiter is left");
}

#[test]
fn ack_stored_without_delivery_is_not_stored() {
    let options = GatewayOptions {
        ack_timeout: Duration::from_millis(10),
        tick: Duration::from_millis(5),
        ..GatewayOptions::default()
    };
    let fixture = Fixture::with(types(), options);
    let answer = fixture.post("/ingest/event/a", STORED, "1");
    assert_eq!((answer.status, pending(&answer)), (202, json!([])));
}

#[test]
fn batch_waits_for_all_its_types() {
    let harness = Harness::patient();
    assert_eq!(
        harness.fixture.post("/ingest/batch", STORED, "{\"t\":\"a\"}\n{\"t\":\"b\"}\n{\"t\":\"a\"}\n").status,
        200
    );
    let asked = harness.last_asked();
    let names: Vec<&str> = asked.types.iter().map(event::TypeName::as_str).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(asked.spans.iter().map(|span| (span.first, span.last)).collect::<Vec<_>>(), [(1, 3)]);
}

#[test]
fn duplicate_waits_for_its_original() {
    let harness = Harness::patient();
    let batch = "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n";
    assert_eq!(harness.fixture.post("/ingest/batch", "Idempotency-Key: k\r\n", batch).status, 200);
    assert_eq!(harness.fixture.post("/ingest/event", "", "{\"id\":4}").status, 200);
    harness.sinks(&[("one", 0)]);
    // The duplicate, the last position that it waits for, and whether it waits only for some of the events there.
    for (path, headers, body, last, only) in [
        ("/ingest/batch", "Idempotency-Key: k\r\n", batch, 3, 0),
        ("/ingest/event", "", "{\"id\":2}", 3, 1),
        ("/ingest/event", "", "{\"id\":4}", 4, 1),
        ("/ingest/batch", "", "{\"id\":4}\n{\"id\":2}", 4, 2),
    ] {
        let mut client = harness.fixture.connect();
        client.post(path, &[STORED, headers].concat(), body.as_bytes());
        harness.wait_for(1);
        let spans = harness.last_asked().spans;
        assert_eq!(spans.iter().map(|span| span.last).collect::<Vec<_>>(), [last], "{body}");
        assert_eq!(spans[0].only.as_ref().map_or(0, std::collections::BTreeSet::len), only, "{body}");
        harness.sinks(&[("one", last)]);
        assert_eq!(client.answer().status, 200);
        harness.sinks(&[("one", 0)]);
    }
    assert_eq!(harness.fixture.stored().len(), 4);
}

/// A hundred thousand ids are megabytes, and a client may abandon as many with each of its connections.
#[test]
fn ids_of_awaited_originals_count_as_in_flight() {
    let harness = Harness::patient();
    let batch: String = (0..1000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    assert_eq!(harness.fixture.post("/ingest/batch", "", &batch).status, 200);
    harness.sinks(&[("one", 0)]);
    let mut client = harness.fixture.connect();
    client.post("/ingest/batch", STORED, batch.as_bytes());
    harness.wait_for(1);
    let in_flight = harness.fixture.counters().bytes_in_flight();
    assert!((16_000..60_000).contains(&in_flight), "{in_flight}");
    harness.sinks(&[("one", 1000)]);
    assert_eq!(client.answer().status, 200);
    harness.fixture.wait("nothing is in flight", |counters| counters.bytes_in_flight() == 0);
}

/// A rejection of two bytes is a hundred: what a response will say is in memory for as long as it waits.
#[test]
fn rejections_awaiting_the_response_count_as_in_flight() {
    let harness = Harness::patient();
    harness.sinks(&[("one", 0)]);
    let mut client = harness.fixture.connect();
    client.post("/ingest/batch/a", STORED, ["1\n", &"x\n".repeat(1000)].concat().as_bytes());
    harness.wait_for(1);
    let in_flight = harness.fixture.counters().bytes_in_flight();
    assert!((50_000..500_000).contains(&in_flight), "{in_flight}");
    harness.sinks(&[("one", 1)]);
    let answer = client.answer();
    assert_eq!((answer.status, answer.json()["refused"].as_array().unwrap().len()), (207, 1000));
    harness.fixture.wait("nothing is in flight", |counters| counters.bytes_in_flight() == 0);
}

#[test]
fn concurrent_duplicates_are_both_answered() {
    let harness = Harness::patient();
    harness.sinks(&[("one", 0)]);
    let mut clients: Vec<_> = (0..8).map(|_| harness.fixture.connect()).collect();
    clients.iter_mut().for_each(|client| client.post("/ingest/event", &[STORED, JSON].concat(), b"{\"id\":1}"));
    harness.wait_for(8);
    harness.sinks(&[("one", 1)]);
    let duplicates = clients.iter_mut().map(|client| client.answer().json()["duplicate"].clone());
    assert_eq!(duplicates.filter(|duplicate| *duplicate == json!(true)).count(), 7);
}

#[test]
fn dead_letter_is_named_in_the_response() {
    let harness = Harness::new(Duration::from_millis(10));
    let id: EventId = "2651fa94-4d60-8482-855f-ec6e00000007".parse().unwrap();
    let position = event::Position { shard: 0, sequence: 1 };
    let refused = RejectedEvent { sink: "one".into(), id, position, reason: DeadLetterReason::RejectedByStore };
    harness.store.refused.lock().unwrap().push(refused);
    harness.sinks(&[("one", 99), ("two", 0)]);
    let dead_letter = json!([{"sink": "one", "id": id.to_string(), "position": "0:1", "reason": "rejected_by_store"}]);
    let answer = harness.fixture.post("/ingest/event/a", STORED, "1");
    assert_eq!((answer.status, answer.code().as_str()), (424, "dead_letter"));
    assert_eq!((&answer.json()["dead"], pending(&answer)), (&dead_letter, json!(["two"])));
    assert_eq!((&answer.json()["position"], &answer.json()["duplicate"]), (&json!("0:1"), &json!(false)));
    assert!(answer.json()["detail"].as_str().unwrap().contains(&format!("forebay dead show {id} --sink one")));
    let answer = harness.fixture.post("/ingest/batch/a", STORED, "1\nx\n");
    assert_eq!((answer.status, answer.code().as_str()), (424, "dead_letter"));
    assert_eq!((&answer.json()["dead"], &answer.json()["accepted"]), (&dead_letter, &json!(1)));
    assert_eq!(answer.json()["refused"][0]["line"], 2);
    assert_eq!(harness.fixture.counters().refusals(ErrorCode::DeadLetter), 0, "it was taken");
}

#[test]
fn stop_ends_the_ack_wait() {
    let mut harness = Harness::patient();
    harness.sinks(&[("one", 0)]);
    let gateway = harness.fixture.take_gateway();
    let mut client = crate::fixture::Client::connect(gateway.local_addr());
    client.post("/ingest/event/a", STORED, b"1");
    let start = Instant::now();
    while harness.fixture.log.delivery_watch().waiting() == 0 {
        assert!(start.elapsed() < Duration::from_mins(1));
        thread::sleep(crate::fixture::LOOK_EVERY);
    }
    assert!(gateway.stop(Instant::now() + Duration::from_mins(1)), "all were answered");
    let answer = client.answer();
    assert_eq!((answer.status, pending(&answer)), (202, json!(["one"])));
}

#[test]
fn memory_ack_needs_a_type_that_allows_it() {
    let harness = Harness::patient();
    let answer = harness.fixture.post("/ingest/event/a", MEMORY, "1");
    assert_eq!((answer.status, answer.code().as_str()), (422, "ack_memory"));
    assert!(answer.json()["detail"].as_str().unwrap().contains("ack_memory = true in [types.a]"));
    assert_eq!(harness.fixture.post("/ingest/batch/a", MEMORY, "1\n").code(), "ack_memory");
    let answer = harness.fixture.post("/ingest/batch", MEMORY, "{\"t\":\"a\"}\n{\"t\":\"quick\"}\n");
    assert_eq!((answer.status, &answer.json()["refused"][0]["code"]), (207, &json!("ack_memory")));
    let answer = harness.fixture.post("/ingest/event/quick", MEMORY, "2");
    assert_eq!((answer.status, &answer.json()["duplicate"]), (202, &json!(false)));
    let answer = harness.fixture.post("/ingest/batch/quick", MEMORY, "3\n4\n");
    assert_eq!((answer.status, &answer.json()["accepted"]), (202, &json!(2)));
    harness.fixture.wait("all are committed", |_| harness.fixture.log.shards()[0].durable() == 4);
    assert_eq!(harness.fixture.payloads(), ["{\"t\":\"quick\"}", "2", "3", "4"]);
    let accepted: u64 = harness.fixture.log.accepted().hold().by_type.iter().sum();
    assert_eq!(accepted, 4, "they are counted as all are");
}

#[test]
fn duplicate_with_memory_ack_is_reported() {
    let harness = Harness::patient();
    let key = [MEMORY, "Idempotency-Key: k\r\n"].concat();
    let first = harness.fixture.post("/ingest/event/quick", &key, "1");
    let again = harness.fixture.post("/ingest/event/quick", &key, "1");
    assert_eq!((again.status, &again.json()["duplicate"]), (202, &json!(true)));
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(harness.fixture.post("/ingest/event/quick", &key, "2").status, 409);
    let key = [MEMORY, "Idempotency-Key: batch\r\n"].concat();
    assert_eq!(harness.fixture.post("/ingest/batch/quick", &key, "1\n2\n").json()["accepted"], 2);
    let again = harness.fixture.post("/ingest/batch/quick", &key, "1\n2\n");
    assert_eq!((again.status, &again.json()["duplicates"]), (202, &json!(2)));
}

#[test]
fn full_disk_rejects_memory_acks() {
    let harness = Harness::patient();
    harness.fixture.log.disk_guard().keep_free(Some(u64::MAX / 2));
    harness.fixture.log.disk_guard().look().unwrap();
    assert_eq!(harness.fixture.post("/ingest/event/quick", MEMORY, "1").status, 507);
    assert_eq!(harness.fixture.post("/ingest/batch/quick", MEMORY, "1\n").status, 507);
    assert!(harness.fixture.stored().is_empty());
}

#[test]
fn closed_gate_rejects_memory_acks() {
    let harness = Harness::patient();
    for (_, gate) in harness.fixture.log.types().gates() {
        gate.set_closed(true);
    }
    for headers in [MEMORY, STORED] {
        assert_eq!(harness.fixture.post("/ingest/event/quick", headers, "1").status, 503);
        assert_eq!(harness.fixture.post("/ingest/batch/quick", headers, "1\n").status, 503);
    }
}

#[test]
fn type_default_applies_without_ack_header() {
    let harness = Harness::new(Duration::from_millis(20));
    harness.sinks(&[("one", 0)]);
    for (path, headers, body, status) in [
        ("/ingest/event/careful", "", "1", 202),
        ("/ingest/data/careful", "", "1", 202),
        ("/ingest/event/careful", "Forebay-Ack: disk\r\n", "1", 200),
        ("/ingest/event/careful", STORED, "1", 202),
        ("/ingest/event/a", "", "1", 200),
        ("/ingest/event/a", STORED, "1", 202),
        ("/ingest/batch/careful", "", "1\n2\n", 202),
        ("/ingest/batch/careful", "Forebay-Ack: disk\r\n", "1\n2\n", 200),
        // The payload names the type.
        ("/ingest/event", "", "{\"t\":\"careful\"}", 202),
        ("/ingest/event", JSON, "{\"t\":\"careful\"}", 202),
        ("/ingest/event", "Forebay-Ack: disk\r\n", "{\"t\":\"careful\"}", 200),
        ("/ingest/event", "", "{\"t\":\"a\"}", 200),
        ("/ingest/event", JSON, "{\"t\":\"a\"}", 200),
        // The strictest of the types holds for all.
        ("/ingest/batch", "", "{\"t\":\"a\"}\n{\"t\":\"careful\"}\n", 202),
        ("/ingest/batch", "Forebay-Ack: disk\r\n", "{\"t\":\"a\"}\n{\"t\":\"careful\"}\n", 200),
        ("/ingest/batch", "", "{\"t\":\"a\"}\n{\"t\":\"b\"}\n", 200),
        ("/ingest/batch", "", "{\"t\":\"a\"}\nx\n", 207),
    ] {
        let answer = harness.fixture.post(path, headers, body);
        assert_eq!(answer.status, status, "{path} {headers} {body}");
        assert_eq!(status == 202, !answer.body.is_empty() && pending(&answer).is_array(), "{path} {headers} {body}");
    }
    let large = format!("{{\"t\":\"careful\",\"x\":\"{}\"}}", "x".repeat(500_000));
    assert_eq!(harness.fixture.post("/ingest/event", "", &large).status, 202, "its type is found by the worker pool");
    assert_eq!(harness.fixture.post("/ingest/event/careful", MEMORY, "1").code(), "ack_memory");
}

#[test]
fn type_with_stored_ack_waits_for_last_sink() {
    let harness = Harness::patient();
    harness.sinks(&[("one", 0)]);
    for (path, body) in [("/ingest/event/careful", "1"), ("/ingest/event", "{\"t\":\"careful\"}")] {
        let mut client = harness.fixture.connect();
        client.post(path, "", body.as_bytes());
        harness.wait_for(1);
        harness.sinks(&[("one", harness.fixture.log.shards()[0].durable())]);
        assert_eq!(client.answer().status, 200, "{path}");
    }
}
