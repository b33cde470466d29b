//! Batches: every answer of `POST /ingest/batch`.

use crate::fixture::{Fixture, named_types, open_types};
use event::{KeyedIds, TypeName};
use gateway::{ErrorCode, GatewayOptions, GatewayTypes};
use limits::memory::Budgets;
use limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, REFUSALS_LISTED_MAX};
use serde_json::json;

const NDJSON: &str = "Content-Type: application/x-ndjson\r\n";
const ARRAY: &str = "Content-Type: application/json\r\n";

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("{{\"n\":{number}}}\n")).collect()
}

#[test]
fn valid_batch_is_stored_as_a_whole() {
    let fixture = Fixture::open();
    let answer = fixture.post("/ingest/batch/a", NDJSON, lines(100));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), json!({"accepted": 100, "duplicates": 0, "refused": []}));
    let stored = fixture.stored();
    assert_eq!(stored.len(), 100);
    for (at, event) in stored.iter().enumerate() {
        assert_eq!((event.type_name.as_str(), event.payload.as_str()), ("a", format!("{{\"n\":{}}}", at + 1).as_str()));
        assert_eq!((event.starts, event.ends), (at == 0, at == 99), "{at}");
    }
    assert!(stored.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(fixture.log.shards()[0].counters().commits.get(), 1);
}

#[test]
fn invalid_lines_are_listed_and_valid_ones_stored() {
    let fixture = Fixture::open();
    let bad = |number: usize| number.is_multiple_of(25);
    let line = |number: usize| if bad(number) { "{\"n\":,}\n".to_owned() } else { format!("{number}\n") };
    let body: String = (1..=100).map(line).collect();
    let answer = fixture.post("/ingest/batch", NDJSON, body);
    assert_eq!(answer.status, 207);
    let verdict = answer.json();
    assert_eq!(verdict["accepted"], 96);
    let refused = verdict["refused"].as_array().unwrap();
    let numbers: Vec<_> = refused.iter().map(|refusal| refusal["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [25, 50, 75, 100]);
    assert!(refused.iter().all(|refusal| refusal["code"] == "json" && refusal["offset"] == 5), "{refused:?}");
    let stored = fixture.payloads();
    assert_eq!(stored, (1..=100).filter(|number| !bad(*number)).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(fixture.counters().refusals(ErrorCode::Json), 4);
    assert!(fixture.stored().last().unwrap().ends);
}

/// `curl -d @FILE` sends the lines of a file as one.
#[test]
fn form_without_line_breaks_gets_a_curl_hint() {
    let fixture = Fixture::open();
    let refused = |headers: &str, body: &str| {
        let answer = fixture.post("/ingest/batch", headers, body);
        let verdict = answer.json();
        (answer.status, verdict["refused"][0]["detail"].as_str().unwrap().to_owned())
    };
    let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
    let (status, detail) = refused(form, "{\"n\":1}{\"n\":2}{\"n\":");
    assert!(
        status >= 400 && detail.starts_with("the text ends within a value; ") && detail.contains("--data-binary"),
        "{detail}"
    );
    let (_, detail) = refused("", "{\"n\":1}{\"n\":");
    assert!(!detail.contains("curl"), "{detail}");
    let (_, detail) = refused(form, "1\n{\"n\":1}{\"n\":\n");
    assert!(!detail.contains("curl"), "{detail}: there are line breaks");
    let whole = fixture.post("/ingest/batch", form, "{\"n\":1}{\"n\":2}");
    assert_eq!(whole.json()["accepted"], 2, "values need no line breaks");
}

#[test]
fn batch_status_depends_on_rejected_records() {
    let fixture = Fixture::open();
    let deep = "[".repeat(129) + &"]".repeat(129);
    for (body, status, accepted) in [
        ("1\n2\n".to_owned(), 200, 2),
        ("1\nx\n".to_owned(), 207, 1),
        (format!("{deep}\nx\n"), 422, 0),
        ("x\ny\n".to_owned(), 400, 0),
        ("\n\n".to_owned(), 200, 0),
    ] {
        let answer = fixture.post("/ingest/batch", NDJSON, &body);
        assert_eq!(answer.status, status, "{body}");
        assert_eq!(answer.json()["accepted"], accepted, "{body}");
    }
    assert_eq!(fixture.stored().len(), 3);
}

#[test]
fn array_is_a_batch() {
    let fixture = Fixture::open();
    for headers in [ARRAY, ""] {
        assert_eq!(fixture.post("/ingest/batch", headers, "[1, {\"a\": 2},\n3]").json()["accepted"], 3);
    }
    assert_eq!(fixture.payloads(), ["1", "{\"a\": 2}", "3", "1", "{\"a\": 2}", "3"]);
    let answer = fixture.post("/ingest/batch", ARRAY, "[1, 2");
    assert_eq!((answer.status, answer.code().as_str()), (400, "json"));
    assert_eq!(answer.json()["offset"], 5);
    assert_eq!(fixture.stored().len(), 6);
}

#[test]
fn large_array_is_accepted() {
    let fixture = Fixture::open();
    let element = format!("\"{}\"", "x".repeat(1000));
    let body = format!("[{}]", vec![element.as_str(); 2000].join(","));
    let answer = fixture.post("/ingest/batch", "Idempotency-Key: k\r\n", &body);
    assert_eq!(answer.json()["accepted"], 2000);
    let stored = fixture.stored();
    assert!(stored.len() == 2000 && stored.iter().all(|event| event.payload == element));
}

#[test]
fn records_have_separate_types_and_ids() {
    let types =
        GatewayTypes { type_pointer: Some("/t".parse().unwrap()), ..named_types(&[("a", Some("/id")), ("b", None)]) };
    let fixture = Fixture::with(types, GatewayOptions::default());
    let body =
        "{\"t\":\"a\",\"id\":\"x\"}\n{\"t\":\"b\"}\n\n{\"t\":\"c\"}\n{\"t\":\"a\",\"id\":[]}\n{\"t\":\"b\"}\n{}\n";
    let answer = fixture.post("/ingest/batch", "Idempotency-Key: k\r\n", body);
    assert_eq!(answer.status, 207);
    let refused = answer.json()["refused"].clone();
    let found = |at: usize| (refused[at]["line"].clone(), refused[at]["code"].clone(), refused[at]["pointer"].clone());
    assert_eq!(found(0), (json!(4), json!("unknown_type"), json!("/t")));
    assert_eq!(found(1), (json!(5), json!("key"), json!("/id")));
    assert_eq!((refused[2]["line"].clone(), refused[2]["code"].clone()), (json!(7), json!("unknown_type")));
    let id = |type_name: &str, key: &str, number| {
        KeyedIds::new("", &TypeName::new(type_name).unwrap(), key.as_bytes()).id(number).to_string()
    };
    let stored: Vec<_> = fixture.stored().into_iter().map(|event| (event.type_name, event.id)).collect();
    let expected = [("a", id("a", "x", 0)), ("b", id("b", "k", 2)), ("b", id("b", "k", 5))];
    assert_eq!(stored, expected.map(|(name, id)| (name.to_owned(), id)));
    let counts = fixture.log.accepted().hold().by_type.clone();
    assert_eq!(counts.iter().sum::<u64>(), 3);
}

#[test]
fn resent_batch_has_the_same_ids() {
    // To two gateways: each of them would recognise a duplicate.
    let ids = || {
        let fixture = Fixture::open();
        fixture.post("/ingest/batch", "Idempotency-Key: k\r\n", lines(10));
        fixture.stored().into_iter().map(|event| event.id).collect::<Vec<_>>()
    };
    let (one, other) = (ids(), ids());
    assert_eq!(one, other);
    let first = KeyedIds::new("", &TypeName::new("event").unwrap(), b"k").id(1).to_string();
    assert_eq!((&one[0], one.len()), (&first, 10));
}

#[test]
fn list_of_rejections_is_bounded() {
    let fixture = Fixture::open();
    let body = "x\n".repeat(REFUSALS_LISTED_MAX);
    assert_eq!(fixture.post("/ingest/batch", NDJSON, &body).json().get("refused_count"), None);
    let verdict = fixture.post("/ingest/batch", NDJSON, body + "1\ny\nz\n").json();
    assert_eq!(verdict["refused"].as_array().unwrap().len(), REFUSALS_LISTED_MAX);
    assert_eq!(verdict["refused_count"], REFUSALS_LISTED_MAX + 2);
    assert_eq!(verdict["accepted"], 1);
}

#[test]
fn batch_size_and_records_are_limited() {
    let fixture = Fixture::open();
    let many = "1\n".repeat(BATCH_RECORDS_MAX);
    assert_eq!(fixture.post("/ingest/batch", NDJSON, &many).json()["accepted"], BATCH_RECORDS_MAX);
    let before = fixture.log.shards()[0].durable();
    let answer = fixture.post("/ingest/batch", NDJSON, many + "1\n");
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_many_records"));
    let mut client = fixture.connect();
    client.send(format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", BATCH_BYTES_MAX + 1));
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert_eq!(fixture.log.shards()[0].durable(), before);
}

#[test]
fn chunked_batch_is_rejected_at_the_limit() {
    let fixture = Fixture::with(open_types(), GatewayOptions::default());
    let mut client = fixture.connect();
    client.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let line = format!("{}\n", "1".repeat(1023));
    let chunk = format!("{:x}\r\n{}\r\n", line.len() * 64, line.repeat(64));
    for _ in 0..=BATCH_BYTES_MAX / (line.len() * 64) {
        if client.try_send(&chunk).is_err() {
            break;
        }
    }
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert!(fixture.stored().is_empty());
}

#[test]
fn batch_is_not_stored_if_client_disconnects() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    client.send("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n1\n2\n3\n");
    fixture.wait("the bytes are there", |counters| counters.bytes_in_flight() > 0);
    drop(client);
    fixture.wait("the bytes are gone", |counters| counters.bytes_in_flight() == 0 && counters.open_connections() == 0);
    assert!(fixture.stored().is_empty());
}

#[test]
fn small_records_count_with_their_memory() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let body = "1\n".repeat(1_000);
    client.send(format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{body}"));
    fixture.wait("the records are there", |counters| counters.bytes_in_flight() > 64 * 1_000);
}

#[test]
fn batch_above_memory_limit_is_413() {
    const BATCH_BYTES: usize = 100_000;
    let memory = Budgets { batch_bytes: BATCH_BYTES, ..Budgets::FULL };
    let fixture = Fixture::with(open_types(), GatewayOptions { memory, ..GatewayOptions::default() });
    let mut client = fixture.connect();
    client.send(format!("POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", BATCH_BYTES + 1));
    let answer = client.answer();
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("100000 bytes")));
    // As a body it fits, and as records it doesn't.
    let answer = fixture.post("/ingest/batch", NDJSON, "1\n".repeat(BATCH_BYTES / 4));
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("more than 100000 bytes")));
    assert_eq!(fixture.post("/ingest/batch", NDJSON, "1\n".repeat(100)).json()["accepted"], 100);
}
