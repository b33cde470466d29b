//! Duplicates, over HTTP.

use crate::fixture::{Client, Fixture, named_types};
use gateway::{ErrorCode, GatewayOptions, GatewayTypes};

const ACCEPT: &str = "Accept: application/json\r\n";

fn key(key: &str) -> String {
    format!("Idempotency-Key: {key}\r\n{ACCEPT}")
}

#[test]
fn repeated_event_is_reported_as_duplicate() {
    let fixture = Fixture::open();
    let first = fixture.post("/ingest/event", &key("a"), "1").json();
    assert_eq!(first["duplicate"], false);
    let again = fixture.post("/ingest/event", &key("a"), "1").json();
    assert_eq!(
        (&again["duplicate"], &again["id"], &again["position"]),
        (&true.into(), &first["id"], &first["position"])
    );
    let other = fixture.post("/ingest/event", &key("a"), "2");
    assert_eq!((other.status, other.code().as_str()), (409, "id_reused"));
    assert_eq!(fixture.post("/ingest/event/other", &key("a"), "2").status, 200);
    assert_eq!(fixture.payloads(), ["1", "2"]);
    assert_eq!((fixture.counters().duplicates(), fixture.counters().refusals(ErrorCode::IdReused)), (1, 1));
}

#[test]
fn concurrent_requests_with_one_key_store_once() {
    let fixture = Fixture::with_shards(3);
    let address = fixture.address();
    let threads: Vec<_> = (0..24)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                for number in 0..50 {
                    client.post("/ingest/event", &key(&number.to_string()), number.to_string().as_bytes());
                    assert_eq!(client.answer().status, 200);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(fixture.stored().len(), 50);
    assert_eq!(fixture.counters().duplicates(), 23 * 50);
}

#[test]
fn repeated_batch_counts_as_duplicates() {
    let fixture = Fixture::open();
    let body = "1\n2\nx\n";
    let first = fixture.post("/ingest/batch", &key("a"), body);
    assert_eq!((first.status, &first.json()["accepted"], &first.json()["duplicates"]), (207, &2.into(), &0.into()));
    let again = fixture.post("/ingest/batch", &key("a"), body);
    assert_eq!((again.status, &again.json()["accepted"], &again.json()["duplicates"]), (207, &0.into(), &2.into()));
    assert_eq!(again.json()["refused"][0]["line"], 3);
    let other = fixture.post("/ingest/batch", &key("a"), "1\n3\n");
    assert_eq!((other.status, other.code().as_str()), (409, "id_reused"));
    // The key of an event is another one.
    assert_eq!(fixture.post("/ingest/event", &key("a"), "4").status, 200);
    assert_eq!(fixture.payloads(), ["1", "2", "4"]);
}

#[test]
fn records_are_deduplicated_by_their_ids() {
    let fixture = Fixture::with(named_types(&[("event", Some("/id"))]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event", "", r#"{"id":1}"#).status, 200);
    let body = [r#"{"id":1}"#, "", r#"{"id":2}"#, r#"{"id":1,"other":0}"#, r#"{"id":2}"#, "{}"].join("\n");
    let answer = fixture.post("/ingest/batch", "", body);
    assert_eq!((answer.status, &answer.json()["accepted"], &answer.json()["duplicates"]), (207, &2.into(), &2.into()));
    let refused = &answer.json()["refused"];
    assert_eq!((&refused[0]["line"], &refused[0]["code"]), (&4.into(), &"id_reused".into()));
    // The log rejects last, and its rejections are listed in the order of the lines.
    let mixed = fixture.post("/ingest/batch", "", "x\n{\"id\":1,\"other\":1}\ny\n{\"id\":2,\"other\":1}\nz\n");
    let lines: Vec<_> = mixed.json()["refused"].as_array().unwrap().iter().map(|one| one["line"].as_u64()).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5].map(Some), "{}", mixed.json());
    assert_eq!(fixture.payloads(), [r#"{"id":1}"#, r#"{"id":2}"#, "{}"]);
    let again = fixture.post("/ingest/batch", "", "{\"id\":2}\n{\"id\":1}");
    assert_eq!((again.status, &again.json()["duplicates"]), (200, &2.into()));
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn atomic_batch_is_stored_whole_or_not() {
    let fixture = Fixture::open();
    let atomic = "Forebay-Atomic: true\r\n";
    let answer = fixture.post("/ingest/batch", atomic, "1\nx\n2\n");
    assert_eq!((answer.status, &answer.json()["accepted"]), (422, &0.into()));
    assert_eq!(answer.json()["refused"][0]["line"], 2);
    assert!(fixture.stored().is_empty());
    assert_eq!(fixture.post("/ingest/batch", atomic, "1\n2\n").status, 200);
    assert_eq!(fixture.post("/ingest/batch", "Forebay-Atomic: false\r\n", "3\nx").status, 207);
    let odd = fixture.post("/ingest/batch", "Forebay-Atomic: maybe\r\n", "4");
    assert_eq!((odd.status, odd.code().as_str()), (400, "bad_request"));
    assert_eq!(odd.json()["title"], "Invalid header value");
    assert_eq!(fixture.payloads(), ["1", "2", "3"]);
}

#[test]
fn rejected_atomic_batch_waits_for_no_own_record() {
    let fixture = Fixture::with(named_types(&[("event", Some("/id"))]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event", "", "{\"id\":1}").status, 200);
    let body = "{\"id\":2}\n{\"id\":2}\n{\"id\":1,\"other\":0}";
    let answer = fixture.post("/ingest/batch", "Forebay-Atomic: true\r\n", body);
    let counts = ["accepted", "duplicates"].map(|name| answer.json()[name].as_u64());
    assert_eq!((answer.status, counts), (422, [Some(0), Some(0)]), "{}", answer.json());
    assert_eq!(fixture.payloads().len(), 1);
}

/// A duplicate is durable; a rejected batch hasn't waited for that.
#[test]
fn rejected_atomic_batch_reports_no_duplicates() {
    let fixture = Fixture::with(named_types(&[("event", Some("/id"))]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/batch", "", "{\"id\":1}\n{\"id\":2}").status, 200);
    let body = "{\"id\":1}\n{\"id\":2,\"other\":0}";
    let answer = fixture.post("/ingest/batch", "Forebay-Atomic: true\r\n", body);
    let counts = ["accepted", "duplicates"].map(|name| answer.json()[name].as_u64());
    assert_eq!((answer.status, counts), (422, [Some(0), Some(0)]), "{}", answer.json());
    assert_eq!(answer.json()["refused"][0]["line"], 2);
    let apart = fixture.post("/ingest/batch", "", body);
    assert_eq!((apart.status, apart.json()["duplicates"].as_u64()), (207, Some(1)), "{}", apart.json());
}

#[test]
fn atomic_batch_with_reused_id_is_rejected() {
    let fixture = Fixture::with(named_types(&[("event", Some("/id"))]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event", "", r#"{"id":1}"#).status, 200);
    let atomic = "Forebay-Atomic: true\r\nIdempotency-Key: k\r\n";
    let answer = fixture.post("/ingest/batch", atomic, "{\"id\":2}\n{\"id\":1,\"other\":0}\n{}");
    assert_eq!((answer.status, &answer.json()["accepted"]), (422, &0.into()));
    assert_eq!(
        (&answer.json()["refused"][0]["line"], &answer.json()["refused"][0]["code"]),
        (&2.into(), &"id_reused".into())
    );
    assert_eq!(fixture.stored().len(), 1);
    let corrected = fixture.post("/ingest/batch", atomic, "{\"id\":2,\"corrected\":1}\n{}");
    assert_eq!((corrected.status, &corrected.json()["accepted"]), (200, &2.into()));
}

/// A rejected record isn't a duplicate when it is resent: it isn't stored.
#[test]
fn retry_of_partial_batch_stores_the_rest() {
    let fixture = Fixture::with(named_types(&[("a", None)]), GatewayOptions::default());
    let types = GatewayTypes { type_pointer: Some("/type".parse().unwrap()), ..named_types(&[("a", None)]) };
    fixture.gateway().control().configure(&types, &GatewayOptions::default());
    let body = "{\"type\":\"a\",\"n\":1}\n{\"type\":\"b\",\"n\":2}\n{\"type\":\"a\",\"n\":3}\n";
    let counts = |headers: &str, body: &str| {
        let answer = fixture.post("/ingest/batch", headers, body);
        let json = answer.json();
        let count = |name: &str| json[name].as_u64().unwrap();
        (answer.status, count("accepted"), count("duplicates"), json["refused"].as_array().unwrap().len())
    };
    assert_eq!(counts(&key("k"), body), (207, 2, 0, 1));
    assert_eq!(counts(&key("k"), body), (207, 0, 2, 1), "it is rejected again");
    let types = GatewayTypes { type_pointer: types.type_pointer, ..named_types(&[("a", None), ("b", None)]) };
    fixture.gateway().control().configure(&types, &GatewayOptions::default());
    assert_eq!(counts(&key("k"), body), (200, 1, 2, 0), "now it can be accepted");
    assert_eq!(counts(&key("k"), body), (200, 0, 3, 0));
    assert_eq!(fixture.stored().len(), 3);
    let other = fixture.post("/ingest/batch", &key("k"), body.replace('3', "4"));
    assert_eq!((other.status, other.code().as_str()), (409, "id_reused"));
    assert_eq!(counts(&key("whole"), body), (200, 3, 0, 0));
    assert_eq!(counts(&key("whole"), body), (200, 0, 3, 0));
}

#[test]
fn retry_of_batch_with_reused_id_reports_duplicates() {
    let fixture = Fixture::with(named_types(&[("event", Some("/id"))]), GatewayOptions::default());
    assert_eq!(fixture.post("/ingest/event", "", r#"{"id":1}"#).status, 200);
    let body = "{\"id\":2}\n{\"id\":1,\"other\":0}\n{}\n";
    for (accepted, duplicates) in [(2, 0), (0, 2), (0, 2)] {
        let answer = fixture.post("/ingest/batch", &key("k"), body);
        let json = answer.json();
        let counts = ["accepted", "duplicates"].map(|name| json[name].as_u64().unwrap());
        assert_eq!((answer.status, counts), (207, [accepted, duplicates]), "{json}");
        assert_eq!((&json["refused"][0]["line"], &json["refused"][0]["code"]), (&2.into(), &"id_reused".into()));
    }
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn batch_key_is_scoped_by_type_and_form() {
    let fixture = Fixture::open();
    for path in ["/ingest/batch/a", "/ingest/batch/b", "/ingest/batch"] {
        let answer = fixture.post(path, &key("k"), "1\n2\n").json();
        assert_eq!((&answer["accepted"], &answer["duplicates"]), (&2.into(), &0.into()), "{path}");
        let answer = fixture.post(path, &key("k"), "1\n2\n").json();
        assert_eq!((&answer["accepted"], &answer["duplicates"]), (&0.into(), &2.into()), "{path}");
    }
    let typed = |content_type: &str| format!("Content-Type: {content_type}\r\n{}", key("form"));
    assert_eq!(fixture.post("/ingest/batch/a", &typed("application/json"), "[1,2]").json()["accepted"], 2);
    let other = fixture.post("/ingest/batch/a", &typed("application/x-ndjson"), "[1,2]");
    assert_eq!((other.status, other.code().as_str()), (409, "id_reused"), "as a line these are one record");
}
