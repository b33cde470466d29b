//! Events in each mode, and arbitrary bytes.

use std::sync::Arc;

use testkit::fuzz::{Corpus, run};

use crate::testing::{Taken, call, decode, fixed, head, lines, post};
use crate::{Intake, IntakeHead, IntakeRoute, Reply};

use super::CloudEvents;

const STRUCTURED: &[(&str, &str)] = &[("content-type", "application/cloudevents+json; charset=UTF-8")];
const BATCH: &[(&str, &str)] = &[("content-type", "application/cloudevents-batch+json")];
/// The stored text of the event that most tests send.
const STORED: &str = r#"{"specversion":"1.0","id":"A/1","source":"/shop","type":"com.example.Sold","datacontenttype":"application/json","subject":"José 1","time":"2026-11-28T12:00:00Z","partitionkey":"7","data":{"a":[1,"x y"]}}"#;

fn intake() -> Arc<dyn Intake> {
    Arc::new(CloudEvents)
}

fn sent(headers: &[(&str, &str)], body: &str, rejected: &[usize]) -> Result<(Vec<Taken>, Reply), Reply> {
    post(&mut *call(&intake(), "POST", "", headers), body.as_bytes(), rejected)
}

fn stored(headers: &[(&str, &str)], body: &[u8]) -> Result<String, String> {
    let mut call = call(&intake(), "POST", "/", headers);
    let mut taken = decode(&mut *call, body).unwrap();
    assert_eq!(taken.len(), 1);
    taken.remove(0).payload
}

fn binary<'h>(more: &[(&'h str, &'h str)]) -> Vec<(&'h str, &'h str)> {
    let required =
        [("ce-specversion", "1.0"), ("CE-Id", "A/1"), ("ce-source", "/shop"), ("ce-type", "com.example.Sold")];
    required.iter().chain(more).copied().collect()
}

fn required(more: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"A/1","source":"/shop","type":"com.example.Sold"{more}}}"#)
}

#[test]
fn modes_store_the_same_bytes() {
    // Any order, indented, with a number and a null.
    let body = "{ \"data\" : { \"a\" : [ 1 ,\n \"x y\" ] }, \"subject\":\"Jos\\u00e9 1\", \"partitionkey\":7, \"unset\":null,
        \"type\":\"com.example.Sold\", \"source\":\"/shop\", \"time\":\"2026-11-28T12:00:00Z\", \"id\":\"A/1\", \"specversion\":\"1.0\" }";
    let (taken, reply) = sent(STRUCTURED, body, &[]).unwrap();
    assert_eq!(reply, Reply::empty(204));
    let expected = Taken {
        type_name: "com.example.sold".to_owned(),
        id: Some(b"/shop\x1fA/1".to_vec()),
        payload: Ok(STORED.to_owned()),
    };
    assert_eq!(taken, std::slice::from_ref(&expected));
    assert_eq!(sent(BATCH, &format!("[{body}]"), &[]).unwrap(), (vec![expected.clone()], Reply::empty(204)));
    let headers = binary(&[
        ("ce-time", "2026-11-28T12:00:00Z"),
        ("ce-partitionkey", "7"),
        ("ce-subject", "\"Jos%C3%A9 1\""),
        ("ce-datacontenttype", "ignored"),
        ("content-type", "application/json; charset=utf-8"),
    ]);
    assert_eq!(sent(&headers, "{\"a\": [1, \"x y\"]}", &[]).unwrap(), (vec![expected], Reply::empty(204)));
}

#[test]
fn unencoded_headers_keep_their_text() {
    // The library for JavaScript writes Latin-1.
    let utf8 = lines(&[
        ("ce-specversion", "1.0"),
        ("ce-id", "A/1"),
        ("ce-source", "/shop"),
        ("ce-type", "a"),
        ("ce-subject", "José"),
    ]);
    let latin: Vec<u8> = utf8.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect();
    for lines in [utf8.as_bytes(), &latin] {
        let head = IntakeHead { lines, ..head("POST", "", "") };
        let IntakeRoute::Ingest(mut call) = intake().route(&head) else { panic!("not posted") };
        let taken = decode(&mut *call, b"").unwrap();
        assert!(taken[0].payload.as_ref().unwrap().contains("\"subject\":\"José\""), "{taken:?}");
    }
}

#[test]
fn data_has_one_form_in_each_mode() {
    for (media_type, body, member, stored_member) in [
        ("text/plain", &b"a \"b\""[..], r#""data":"a \"b\"""#, r#""data":"a \"b\"""#),
        ("text/plain", b"a", r#""data_base64":"YQ==""#, r#""data":"a""#),
        ("application/xml", b"<a/>", r#""data":"<a/>""#, r#""data":"<a/>""#),
        ("text/plain", b"\xff", r#""data_base64":"/w==""#, r#""data_base64":"/w==""#),
        ("image/png", b"\x89PNG", r#""data_base64":"iVBORw==""#, r#""data_base64":"iVBORw==""#),
        ("application/a+json", b"{\"a\": \" \\\" \"}", r#""data":{ "a":" \" "}"#, r#""data":{"a":" \" "}"#),
        ("application/json", b"true", r#""data_base64":"dHJ1ZQ==""#, r#""data":true"#),
    ] {
        let expected = required(&format!(r#","datacontenttype":"{media_type}",{stored_member}"#));
        let in_binary = stored(&binary(&[("content-type", media_type)]), body);
        assert_eq!(in_binary.as_deref(), Ok(expected.as_str()), "{media_type}");
        let event = required(&format!(r#","datacontenttype":"{media_type}",{member}"#));
        assert_eq!(stored(STRUCTURED, event.as_bytes()).as_deref(), Ok(expected.as_str()), "{member}");
    }
}

#[test]
fn events_without_data_have_none() {
    assert_eq!(stored(STRUCTURED, required("").as_bytes()), Ok(required("")));
    assert_eq!(stored(&binary(&[]), b""), Ok(required("")));
    assert_eq!(stored(STRUCTURED, required(r#","data":null"#).as_bytes()), Ok(required("")));
    let json = required(r#","datacontenttype":"application/json","data":1"#);
    assert_eq!(
        [stored(&binary(&[]), b"1"), stored(STRUCTURED, required(r#","data":1"#).as_bytes())],
        [Ok(json.clone()), Ok(json)]
    );
}

#[test]
fn invalid_events_are_rejected() {
    for (body, expected) in [
        (r#"{"specversion":"1.0","id":"1","source":"/a"}"#.to_owned(), "`type` is missing"),
        (r#"{"specversion":"1.0","id":"","source":"/a","type":"a"}"#.to_owned(), "`id` is missing or empty"),
        (r#"{"specversion":"0.3","id":"1","source":"/a","type":"a"}"#.to_owned(), "isn't 1.0"),
        (required(r#","extension":{}"#), "`extension` is an object"),
        (required(r#","data":1,"data_base64":"""#), "both"),
        (required(r#","data_base64":"?""#), "base64"),
        (required(r#","data_base64":"e30x","datacontenttype":"application/json""#), "isn't JSON"),
        (required(&format!(r#","type":"{}""#, "a".repeat(65))), "65 bytes"),
        (required(&(0..253).map(|number| format!(r#","a{number}":1"#)).collect::<String>()), "256 attributes"),
        (r#"{"specversion":"1.0","id":"1","source":"/a\u001fb","type":"a"}"#.to_owned(), "`source` has a control"),
        ("[]".to_owned(), "isn't a JSON object"),
    ] {
        let error = stored(STRUCTURED, body.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{body}: {error}");
    }
    assert!(stored(&[("ce-id", "1")], b"{}").unwrap_err().contains("`specversion` is missing"));
}

#[test]
fn rejections_are_in_the_response() {
    let (_, reply) = sent(STRUCTURED, &required(""), &[0]).unwrap();
    let expected =
        r#"{"type":"urn:forebay:problem:schema","status":422,"code":"schema","detail":"the schema of the type"}"#;
    assert_eq!(
        (reply.status, reply.content_type, reply.body.as_slice()),
        (422, Some("application/problem+json"), expected.as_bytes())
    );
    let (_, reply) = sent(BATCH, &format!("[{0},3,{0}]", required("")), &[2]).unwrap();
    let expected = r#"[{"index":1,"code":"schema","detail":"the event isn't a JSON object: send an object with the attributes of the event"},{"index":2,"code":"schema","detail":"the schema of the type"}]"#;
    assert_eq!((reply.status, String::from_utf8(reply.body).unwrap().as_str()), (207, expected));
    assert_eq!(sent(BATCH, "[]", &[]), Ok((Vec::new(), Reply::empty(204))));
}

#[test]
fn whole_requests_are_rejected() {
    let avro = &[("content-type", "application/cloudevents+avro"), ("ce-id", "1")];
    for (headers, body, status) in [
        (STRUCTURED, "{", 400),
        (BATCH, "{}", 400),
        (&[("content-type", "application/json")], "{}", 415),
        (avro, "{}", 415),
    ] {
        assert_eq!(sent(headers, body, &[]).unwrap_err().status, status, "{body}");
    }
}

#[test]
fn options_allow_the_origin() {
    let reply = fixed(&intake(), "OPTIONS", "", &[("WebHook-Request-Origin", "eventgrid.azure.net")]);
    let expected = "allow: POST, OPTIONS\r\nwebhook-allowed-origin: eventgrid.azure.net\r\nwebhook-allowed-rate: *\r\n";
    assert_eq!((reply.status, reply.lines.as_str()), (200, expected));
    assert_eq!(fixed(&intake(), "OPTIONS", "/", &[]).lines, "allow: POST, OPTIONS\r\n");
    let lines = lines(&[]);
    assert!(matches!(intake().route(&head("GET", "", &lines)), IntakeRoute::Methods("POST, OPTIONS")));
    assert!(matches!(intake().route(&head("POST", "/x", &lines)), IntakeRoute::Unknown));
}

#[test]
fn fuzz_cloudevents() {
    let batch = format!("[{},{}]", STORED, required(r#","data_base64":"e30=","datacontenttype":"application/json""#));
    let samples = [STORED.as_bytes(), batch.as_bytes(), b"{\"a\":1}"];
    let tokens: [&[u8]; 8] = [
        b"\"data\":",
        b"\"data_base64\":\"AA==\"",
        b"null",
        b"\"id\":1,",
        b"\\ud800",
        b"\"datacontenttype\":\"text/plain\",",
        b"[",
        b"}",
    ];
    run("cloudevents", Corpus { samples: &samples, tokens: &tokens }, |body| {
        let of = |headers: &[(&str, &str)]| {
            let taken = decode(&mut *call(&intake(), "POST", "", headers), body);
            let payloads = taken.map(|taken| taken.into_iter().map(|record| record.payload).collect::<Vec<_>>());
            // What is stored is an event that is stored unchanged.
            for text in payloads.iter().flatten().flatten() {
                assert_eq!(stored(STRUCTURED, text.as_bytes()).as_ref(), Ok(text));
            }
            payloads
                .map_err(|problem| problem.code)
                .map(|all| all.into_iter().map(|one| one.is_ok()).collect::<Vec<_>>())
        };
        (
            of(STRUCTURED),
            of(BATCH),
            of(&binary(&[("content-type", "text/plain")])),
            of(&binary(&[("content-type", "a/b")])),
        )
    });
}
