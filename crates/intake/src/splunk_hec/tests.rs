//! What senders post, and what they get.

use std::sync::Arc;

use testkit::fuzz::{self, Corpus};

use super::{KIND, SplunkHec};
use crate::testing::{call, decode, fixed, post};
use crate::{Intake, IntakeRoute, Problem, ProblemKind};

const EVENT: &str = "/services/collector/event";

fn intake() -> Arc<dyn Intake> {
    Arc::new(SplunkHec::default())
}

/// The type and the payload of each record.
type Stored = Vec<(String, Result<String, String>)>;

/// The types and payloads of a body, or the response to it.
fn stored(target: &str, body: &str) -> Result<Stored, String> {
    match post(&mut *call(&intake(), "POST", target, &[]), body.as_bytes(), &[]) {
        Ok((taken, _)) => Ok(taken.into_iter().map(|record| (record.type_name, record.payload)).collect()),
        Err(reply) => Err(format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body))),
    }
}

/// The payloads of a body that is accepted.
fn payloads(target: &str, body: &str) -> Vec<String> {
    stored(target, body).unwrap().into_iter().map(|(_, payload)| payload.unwrap()).collect()
}

fn response(target: &str, headers: &[(&str, &str)], body: &str, rejected: &[usize]) -> String {
    let reply = match post(&mut *call(&intake(), "POST", target, headers), body.as_bytes(), rejected) {
        Ok((_, reply)) | Err(reply) => reply,
    };
    format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body))
}

#[test]
fn events_become_flat_objects() {
    let body = r#"{"time":1795867200.5,"host":"web-1","source":"app","sourcetype":"App:Log","index":"main","event":{"a":1},"fields":{"b":"c"},"x":1}"#;
    let expected = r#"{"time":"2026-11-28T12:00:00.500Z","host":"web-1","source":"app","sourcetype":"App:Log","index":"main","event":{"a":1},"fields":{"b":"c"}}"#;
    assert_eq!(stored(EVENT, body), Ok(vec![("app_log".to_owned(), Ok(expected.to_owned()))]));
    let absent = r#"{"time":null,"sourcetype":"","event":"x","host":null}"#;
    assert_eq!(stored(EVENT, absent), Ok(vec![("hec".to_owned(), Ok(r#"{"event":"x"}"#.to_owned()))]));
}

#[test]
fn bodies_have_values_in_any_layout() {
    let two = vec![r#"{"host":"a","event":1}"#.to_owned(), r#"{"event":"2"}"#.to_owned()];
    for body in [
        r#"{"host":"a","event":1}{"event":"2"}"#,
        "{\"host\":\"a\",\"event\":1}\n {\"event\":\"2\"}\r\n ",
        r#"[{"host":"a","event":1},{"event":"2"}]"#,
        r#"{"host":"a","event":1}[{"event":"2"}]"#,
        "\u{feff}{\"event\":1,\"host\":\"a\"} {\"event\":\"2\"}",
    ] {
        assert_eq!(payloads("/services/collector", body), two, "{body}");
    }
}

#[test]
fn query_describes_events_that_do_not() {
    let target = "/services/collector/event/1.0?host=a%22b&sourcetype=T&index=";
    let expected = vec![r#"{"host":"a\"b","sourcetype":"T","event":1}"#, r#"{"host":"c","sourcetype":"T","event":2}"#];
    assert_eq!(payloads(target, r#"{"event":1}{"event":2,"host":"c"}"#), expected);
}

#[test]
fn raw_lines_are_events() {
    let stored = stored("/services/collector/raw?channel=1&sourcetype=syslog", "a \"b\"\r\n\n  \nc\u{e9}").unwrap();
    let expected = [r#"{"sourcetype":"syslog","event":"a \"b\""}"#, r#"{"sourcetype":"syslog","event":"cé"}"#];
    assert_eq!(stored, expected.map(|payload| ("syslog".to_owned(), Ok(payload.to_owned()))));
    let taken = decode(&mut *call(&intake(), "POST", "/services/collector/raw/1.0", &[]), b"\xffx").unwrap();
    assert_eq!(taken[0].payload, Ok("{\"event\":\"\u{fffd}x\"}".to_owned()));
}

#[test]
fn invalid_events_are_named_with_codes() {
    for (body, expected) in [
        (r#"{"event":1}{"host":"a"}"#, r#"400 {"text":"Event field is required","code":12,"invalid-event-number":1}"#),
        (r#"{"event":null}"#, r#"400 {"text":"Event field is required","code":12,"invalid-event-number":0}"#),
        (r#"{"event":""}"#, r#"400 {"text":"Event field cannot be blank","code":13,"invalid-event-number":0}"#),
        (
            r#"{"event":1} 7"#,
            r#"400 {"text":"Invalid data format: the value is a number: send an object with the member `event`","code":6,"invalid-event-number":1}"#,
        ),
        (
            r#"{"event":1,"time":"soon"}"#,
            r#"400 {"text":"Invalid data format: `time` is no time: send seconds since 1970","code":6,"invalid-event-number":0}"#,
        ),
        (
            r#"{"event":1,"fields":[]}"#,
            r#"400 {"text":"Invalid data format: `fields` is an array: send an object","code":6,"invalid-event-number":0}"#,
        ),
        (
            r#"{"event":1,"sourcetype":{}}"#,
            r#"400 {"text":"Invalid data format: `sourcetype` is no text: send a string","code":6,"invalid-event-number":0}"#,
        ),
        (
            r#"{"event":1,"host":{}}"#,
            r#"400 {"text":"Invalid data format: `host` is no text: send a string","code":6,"invalid-event-number":0}"#,
        ),
    ] {
        assert_eq!(response(EVENT, &[], body, &[]), expected, "{body}");
    }
    let planted = response(EVENT, &[], r#"{"event":1}{"event":2}"#, &[1]);
    let expected = r#"400 {"text":"Invalid data format: the schema of the type","code":6,"invalid-event-number":1}"#;
    assert_eq!(planted, expected);
}

#[test]
fn bodies_without_events_are_rejected() {
    for body in ["", " \r\n", "[]"] {
        assert!(response(EVENT, &[], body, &[]).starts_with(r#"400 {"text":"No data"#), "{body}");
    }
    assert!(response("/services/collector/raw", &[], "\n", &[]).contains(r#""code":5}"#));
    // The gateway has one kind for all of these.
    let mut call = call(&intake(), "POST", EVENT, &[]);
    assert!(decode(&mut *call, b"").is_err());
    assert!(String::from_utf8_lossy(&call.refusal(&Problem::invalid("")).body).contains(r#""code":5}"#));
    let cut = response(EVENT, &[], r#"{"event":1}{"event":"#, &[]);
    assert!(cut.starts_with("400 ") && cut.ends_with(r#"(byte 20)","code":6,"invalid-event-number":1}"#), "{cut}");
    let deep = "[".repeat(100_000);
    assert!(response(EVENT, &[], &deep, &[]).contains(r#""code":6,"invalid-event-number":0}"#));
}

#[test]
fn large_events_are_passed_on_unchanged() {
    let body = format!(r#"{{"x":1,"event":"{}"}}"#, "x".repeat(limits::EVENT_BYTES_MAX));
    assert_eq!(payloads(EVENT, &body), [body]);
    let line = "x".repeat(3 * limits::EVENT_BYTES_MAX);
    let stored = stored("/services/collector/raw", &line).unwrap();
    assert_eq!(stored[0].1, Err("the line has more than 1 MiB: send shorter ones".to_owned()));
}

#[test]
fn channels_get_new_numbers() {
    let intake = intake();
    let ack = |target: &str, headers: &[(&str, &str)]| {
        let (_, reply) = post(&mut *call(&intake, "POST", target, headers), br#"{"event":1}"#, &[]).unwrap();
        String::from_utf8(reply.body).unwrap()
    };
    assert_eq!(ack(EVENT, &[]), r#"{"text":"Success","code":0}"#);
    let first = ack(EVENT, &[("X-Splunk-Request-Channel", "c")]);
    assert_eq!(first, r#"{"text":"Success","code":0,"ackId":0}"#);
    assert_eq!(ack(&format!("{EVENT}?channel=c"), &[]), r#"{"text":"Success","code":0,"ackId":1}"#);
}

#[test]
fn acknowledgements_are_true_immediately() {
    let acks = "/services/collector/ack?channel=c";
    assert_eq!(response(acks, &[], r#"{"acks":[1, 22]}"#, &[]), r#"200 {"acks":{"1":true,"22":true}}"#);
    assert_eq!(response(acks, &[], r#"{"acks":[]}"#, &[]), r#"200 {"acks":{}}"#);
    for body in ["", "{}", r#"{"acks":[-1]}"#, r#"{"acks":["1\"x"]}"#] {
        assert!(response(acks, &[], body, &[]).starts_with("400 "), "{body}");
    }
    let many = format!(r#"{{"acks":[0{}]}}"#, ",1".repeat(limits::BATCH_RECORDS_MAX));
    assert!(response(acks, &[], &many, &[]).starts_with("413 "));
}

#[test]
fn routes_are_those_of_splunk() {
    let intake = intake();
    let health = fixed(&intake, "GET", "/services/collector/health/1.0", &[]);
    assert_eq!((health.status, &*health.body), (200, &br#"{"text":"HEC is healthy","code":17}"#[..]));
    assert_eq!(fixed(&intake, "OPTIONS", EVENT, &[]).status, 200);
    let lines = crate::testing::lines(&[]);
    for (method, path, expected) in [
        ("GET", EVENT, "Methods(\"OPTIONS, POST\")"),
        ("POST", "/services/collector/x", "Unknown"),
        ("POST", "", "Unknown"),
    ] {
        assert_eq!(format!("{:?}", intake.route(&crate::testing::head(method, path, &lines))), expected);
    }
    assert!(matches!(
        intake.route(&crate::testing::head("POST", "/services/collector/", &lines)),
        IntakeRoute::Ingest(_)
    ));
    assert_eq!(KIND.name, "splunk_hec");
}

#[test]
fn rejected_requests_have_codes_of_splunk() {
    for (kind, expected) in [
        (ProblemKind::Unauthorized, r#"401 {"text":"Token is required: why","code":2}"#),
        (ProblemKind::Forbidden, r#"403 {"text":"Invalid token: why","code":4}"#),
        (ProblemKind::Unavailable, r#"503 {"text":"Server is busy: why","code":9}"#),
        (ProblemKind::TooLarge, r#"413 {"text":"Request is too large: why","code":27}"#),
    ] {
        let problem = Problem { kind, ..Problem::invalid("why") };
        let reply = call(&intake(), "POST", EVENT, &[]).refusal(&problem);
        assert_eq!(format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)), expected);
        assert_eq!(reply.lines.contains("retry-after"), kind == ProblemKind::Unavailable);
    }
}

#[test]
fn fuzz_splunk_hec() {
    let samples: [&[u8]; 4] = [
        br#"{"time":1795867200.5,"host":"h","source":"s","sourcetype":"t","index":"i","event":{"a":[1]},"fields":{"b":"c"}}"#,
        br#"[{"event":"a"},{"event":"b"}]{"event":null} {"event":""}"#,
        br#"{"acks":[1,2,3]}"#,
        b"line 1\r\nline \"2\"\n",
    ];
    let tokens: [&[u8]; 12] = [
        b"\"event\":",
        b"\"time\":",
        b"\"sourcetype\":",
        b"\"fields\":",
        b"null",
        b"[",
        b"{",
        b"}",
        b"]",
        b"\\ud800",
        b"1e999",
        b"\n",
    ];
    let intake = intake();
    fuzz::run("splunk_hec", Corpus { samples: &samples, tokens: &tokens }, |input| {
        ["/services/collector?host=h", "/services/collector/raw", "/services/collector/ack"].map(|target| {
            match post(&mut *call(&intake, "POST", target, &[]), input, &[]) {
                Ok((taken, reply)) => {
                    for payload in taken.iter().filter_map(|record| record.payload.as_ref().ok()) {
                        let kind = json::check(payload.as_bytes()).map_err(|error| error.kind);
                        assert!(!matches!(kind, Err(json::JsonErrorKind::Syntax)), "{payload}");
                    }
                    assert!(json::check(&reply.body).is_ok());
                    (taken.len(), reply.status)
                }
                Err(reply) => {
                    assert!(json::check(&reply.body).is_ok());
                    (0, reply.status)
                }
            }
        })
    });
}

#[test]
fn only_events_with_times_are_repeatable() {
    for (target, body, expected) in [
        (EVENT, r#"{"time":1,"event":"a"}{"time":"2.5","event":"b"}"#, true),
        (EVENT, r#"{"time":1,"event":"a"}{"event":"b"}"#, false),
        (EVENT, r#"[{"time":null,"event":"a"}]"#, false),
        ("/services/collector/raw", "a", false),
    ] {
        assert_eq!(call(&intake(), "POST", target, &[]).is_repeatable(body.as_bytes()), expected, "{body}");
    }
}
