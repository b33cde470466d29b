//! Requests as real senders send them: accepted, or rejected with a message that names what was sent and what to do.

use event::{FURTHER_VALUES_FROM, KeyedIds, TypeName};
use gateway::{GatewayOptions, GatewayTypes, TypeNames};
use serde_json::json;

use crate::fixture::{Answer, Fixture, named_types};

const JSON: &str = "Content-Type: application/json\r\nUser-Agent: Fluent-Bit\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn utf_16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The detail of a rejection: of the request, or of its only record.
fn detail(answer: &Answer) -> String {
    let body = answer.json();
    let of_record = &body["refused"][0]["detail"];
    body["detail"].as_str().or_else(|| of_record.as_str()).unwrap_or_default().to_owned()
}

#[test]
fn every_fluent_bit_format_is_accepted() {
    let fixture = Fixture::open();
    let events: Vec<String> =
        (1..=3).map(|number| format!("{{\"date\":1700000000.{number},\"log\":\"line {number}\"}}")).collect();
    let gelf: Vec<String> = (1..=3)
        .map(|number| format!("{{\"version\":\"1.1\",\"host\":\"h\",\"short_message\":\"{number}\",\"timestamp\":1700000000.{number}}}"))
        .collect();
    for (format, body, expected) in [
        ("json", format!("[{}]", events.join(",")), &events),
        ("json_stream", events.concat(), &events),
        ("json_lines", events.join("\n") + "\n", &events),
        ("gelf", gelf.join("\n") + "\n", &gelf),
        ("gelf without breaks", gelf.concat(), &gelf),
    ] {
        let before = fixture.stored().len();
        let answer = fixture.post("/ingest/batch/fluent", JSON, &body);
        assert_eq!((answer.status, answer.json()["accepted"].as_u64()), (200, Some(3)), "{format}: {answer:?}");
        assert_eq!(&fixture.payloads()[before..], expected.as_slice(), "{format}");
    }
    let large: String = events.iter().cycle().take(55_000).map(String::as_str).collect();
    assert!(large.len() > 2 * 1024 * 1024 - 200_000, "as much as Fluent Bit has in a chunk: {}", large.len());
    assert_eq!(fixture.post("/ingest/batch/fluent", JSON, &large).json()["accepted"], 55_000);
}

/// A key gives the first value of a line the number of the line, regardless of the lines before it.
#[test]
fn values_of_a_line_have_separate_ids() {
    let fixture = Fixture::with(named_types(&[("a", None)]), GatewayOptions::default());
    let body = "{\"n\":1}{\"n\":2}\n\n{\"n\":3}{\"n\":4} {\"n\":5}\n{\"n\":6}\n";
    let key = "Idempotency-Key: k\r\n";
    assert_eq!(fixture.post("/ingest/batch/a", key, body).json()["accepted"], 6);
    assert_eq!(fixture.post("/ingest/batch/a", key, body).json()["duplicates"], 6);
    let ids = KeyedIds::new("", &TypeName::new("a").unwrap(), b"k");
    let expected = [1, FURTHER_VALUES_FROM, 2, FURTHER_VALUES_FROM + 1, FURTHER_VALUES_FROM + 2, 3];
    let stored: Vec<_> = fixture.stored().into_iter().map(|event| event.id).collect();
    assert_eq!(stored, expected.map(|number| ids.id(number).to_string()));
}

#[test]
fn rejected_value_is_named_by_line_and_index() {
    let fixture = Fixture::with(named_types(&[("a", Some("/id"))]), GatewayOptions::default());
    let body = "{\"id\":1}{\"id\":[]}{\"id\":2}\n{\"id\":3} {\"id\":4} oops\n{\"id\":[]}\n";
    let answer = fixture.post("/ingest/batch/a", JSON, body);
    assert_eq!((answer.status, answer.json()["accepted"].as_u64()), (207, Some(2)));
    let refused = answer.json()["refused"].clone();
    let places: Vec<_> = (0..3).map(|at| (refused[at]["line"].clone(), refused[at]["value"].clone())).collect();
    assert_eq!(places, [(json!(1), json!(2)), (json!(2), json!(null)), (json!(3), json!(null))]);
    let again = fixture.post("/ingest/batch/a", JSON, "{\"id\":9} {\"id\":1,\"other\":true}{\"id\":2}\n{\"id\":8}");
    let refused = again.json()["refused"].clone();
    assert_eq!(
        (again.json()["accepted"].as_u64(), again.json()["duplicates"].as_u64()),
        (Some(2), Some(1)),
        "{refused}"
    );
    assert_eq!(
        (&refused[0]["line"], &refused[0]["value"], &refused[0]["code"]),
        (&json!(1), &json!(2), &json!("id_reused"))
    );
}

#[test]
fn webhooks_are_accepted_or_rejected_with_reason() {
    let fixture = Fixture::open();
    let stripe = "{\n  \"id\": \"evt_1\",\n  \"object\": \"event\",\n  \"data\": {\n    \"object\": {}\n  },\n  \"type\": \"charge.succeeded\"\n}";
    let shopify = "{\"id\":820982911946154508,\"email\":\"jon@example.com\",\"total_price\":\"403.00\"}";
    for (headers, body) in [
        ("Content-Type: application/json; charset=utf-8\r\nStripe-Signature: t=1,v1=00\r\n", stripe),
        ("Content-Type: application/json\r\nX-Shopify-Topic: orders/create\r\n", shopify),
    ] {
        assert_eq!(fixture.post("/ingest/event/hook", headers, body).status, 200);
    }
    let slack = "payload=%7B%22type%22%3A%22block_actions%22%7D";
    let command = "token=x&team_id=T1&command=%2Fweather&text=94070+x";
    let twilio = "ToCountry=US&ToState=&SmsMessageSid=SM1&NumMedia=0&Body=hi&From=%2B15551234567&ApiVersion=2010-04-01";
    for path in ["/ingest/event/hook", "/ingest/batch/hook"] {
        for (body, named) in [(slack, "its field `payload`"), (command, "this is a form"), (twilio, "this is a form")] {
            let answer = fixture.post(path, FORM, body);
            assert_eq!(answer.status, 400, "{body}");
            assert!(detail(&answer).contains(named) && !detail(&answer).contains("curl"), "{}", detail(&answer));
        }
    }
    assert_eq!(fixture.stored().len(), 2);
}

#[test]
fn invalid_json_is_named() {
    let fixture = Fixture::open();
    let multipart = b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.ndjson\"\r\n\r\n{\"a\":1}\n{\"a\":2}\n\r\n--x--\r\n";
    for path in ["/ingest/event", "/ingest/batch"] {
        for (body, code, named) in [
            (multipart.to_vec(), "json", "multipart/form-data"),
            (b"\x1f\x8b\x08\0\n{\"a\":1}\n".to_vec(), "utf8", "`Content-Encoding: gzip`"),
            (utf_16("\u{feff}{\"a\":1}\n{\"a\":2}\n"), "utf8", "UTF-16"),
        ] {
            let answer = fixture.post(path, "", &body);
            assert_eq!((answer.status, answer.code().as_str()), (400, code), "{path} {named}");
            assert!(detail(&answer).contains(named), "{path}: {}", detail(&answer));
        }
        for (body, named) in [
            ("{\"a\":NaN}", "no NaN"),
            ("{\"a\":-Infinity}", "no Infinity"),
            ("{'a':1}", "double quotes"),
            ("not json", "JSON expects a value"),
        ] {
            let answer = fixture.post(path, "", body);
            assert!(answer.status == 400 && detail(&answer).contains(named), "{path}: {}", detail(&answer));
        }
        let answer = fixture.post(path, "", utf_16("{\"a\":1}\n{\"a\":2}\n"));
        assert!(answer.status == 400 && detail(&answer).contains("UTF-16"), "{path}: {}", detail(&answer));
    }
    let answer = fixture.post("/ingest/event", "", "{\"a\":1}\n{\"a\":2}\n");
    assert_eq!((answer.status, answer.json()["offset"].as_u64()), (400, Some(8)));
    assert!(detail(&answer).contains("more than one JSON value") && detail(&answer).contains("/ingest/batch"));
    assert!(fixture.stored().is_empty());
}

#[test]
fn pretty_printed_batch_is_rejected_whole() {
    let fixture = Fixture::open();
    let pretty =
        "{\n  \"id\": \"p1\",\n  \"tags\": [\n    \"x\",\n    \"y\"\n  ],\n  \"matrix\": [\n    1,\n    2\n  ]\n}\n";
    for headers in ["", JSON, "Content-Type: application/x-ndjson\r\n"] {
        let answer = fixture.post("/ingest/batch", headers, pretty);
        assert_eq!((answer.status, answer.json()["refused"].as_array().unwrap().len()), (400, 1));
        assert!(detail(&answer).contains("jq -c") && detail(&answer).contains("/ingest/event"), "{}", detail(&answer));
    }
    assert!(fixture.stored().is_empty());
    assert_eq!(fixture.post("/ingest/batch", "", format!("1\n{pretty}2\n")).json()["accepted"], 2);
    assert_eq!(fixture.payloads(), ["1", "2"]);
}

#[test]
fn harmless_request_oddities_are_ignored() {
    let fixture = Fixture::open();
    for (headers, body) in [
        ("Content-Type: application/json\r\nContent-Type: application/json\r\n", "[1,2]"),
        ("Content-Encoding:\r\n", "[1,2]"),
        ("Content-Encoding: \r\nContent-Encoding: identity\r\n", "[1,2]"),
        ("", "\u{feff}[1,2]"),
        ("Content-Type: application/x-ndjson\r\n", "\u{feff}1\n2\n"),
    ] {
        let answer = fixture.post("/ingest/batch", headers, body);
        assert_eq!((answer.status, answer.json()["accepted"].as_u64()), (200, Some(2)), "{headers}{body}");
    }
    let both = "Content-Type: application/json\r\nContent-Type: text/plain\r\n";
    assert_eq!(fixture.post("/ingest/batch", both, "[1]").status, 400);
}

#[test]
fn type_is_accepted_under_its_aliases() {
    let mut names = TypeNames::default();
    names.add(&TypeName::new("order").unwrap(), ["Order Completed", "größe"], false);
    names.add(&TypeName::new("view").unwrap(), ["page viewed"], true);
    let types = GatewayTypes {
        names,
        type_pointer: Some("/event".parse().unwrap()),
        ..named_types(&[("order", None), ("view", None)])
    };
    let fixture = Fixture::with(types, GatewayOptions::default());
    for (path, headers, payload, status) in [
        ("/ingest/event/Order%20Completed", "", "1", 200),
        ("/ingest/event/%6frder", "", "2", 200),
        ("/ingest/event/gr%C3%B6%c3%9Fe", "", "3", 200),
        ("/ingest/event", "Forebay-Type: Page Viewed\r\n", "4", 200),
        ("/ingest/event", "", "{\"event\":\"VIEW\"}", 200),
        ("/ingest/batch", "", "{\"event\":\"Order Completed\"}\n", 200),
        ("/ingest/event/order%20completed", "", "5", 404),
        ("/ingest/event/%ff", "", "6", 404),
        ("/ingest/event/order%2Fview", "", "8", 404),
        ("/ingest/event", "", "{\"event\":7}", 404),
        ("/ingest/event", "", "{\"event\":1e5}", 404),
    ] {
        let answer = fixture.post(path, headers, payload);
        assert_eq!(answer.status, status, "{path} {payload}: {answer:?}");
        assert!(status == 200 || answer.code() == "unknown_type", "{answer:?}");
    }
    let stored: Vec<_> = fixture.stored().into_iter().map(|event| event.type_name).collect();
    assert_eq!(stored, ["order", "order", "order", "view", "view", "order"]);
}
