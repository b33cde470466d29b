//! What senders push, and what they get.

use std::sync::Arc;

use testkit::fuzz::{self, Corpus};

use super::{KIND, Loki};
use crate::testing::{Taken, call, fixed, head, lines, post};
use crate::{Intake, IntakeRoute, Problem, ProblemKind, Reply};

const PUSH: &str = "/loki/api/v1/push";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const PROTO: (&str, &str) = ("Content-Type", "application/x-protobuf");

fn intake() -> Arc<dyn Intake> {
    Arc::new(Loki)
}

fn push(headers: &[(&str, &str)], body: &[u8]) -> Result<(Vec<Taken>, Reply), Reply> {
    post(&mut *call(&intake(), "POST", PUSH, headers), body, &[])
}

fn payloads(headers: &[(&str, &str)], body: &[u8]) -> Vec<Result<String, String>> {
    let (taken, _) = push(headers, body).unwrap();
    assert!(taken.iter().all(|record| record.type_name == "loki.log" && record.id.is_none()));
    taken.into_iter().map(|record| record.payload).collect()
}

fn text(reply: &Reply) -> String {
    format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body))
}

fn snappy(message: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(message).unwrap()
}

/// A field with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

/// 2026-11-28T12:00:00.5Z.
const TIME: [u8; 12] = [0x08, 0xc0, 0x84, 0xab, 0xd8, 0x06, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01];

fn entry(line: &[u8], metadata: &[(&str, &str)]) -> Vec<u8> {
    let mut entry = [field(1, &TIME), field(2, line)].concat();
    for (name, value) in metadata {
        entry.extend(field(3, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat()));
    }
    entry
}

fn request(labels: &str, entries: &[Vec<u8>]) -> Vec<u8> {
    let entries: Vec<u8> = entries.iter().flat_map(|entry| field(2, entry)).collect();
    // The entries may be before the labels.
    field(1, &[entries, field(1, labels.as_bytes())].concat())
}

#[test]
fn both_encodings_have_the_same_events() {
    let json = br#"{"streams":[{"stream":{"job":"app","level":"a\"b"},"values":[["1795867200500000000","hi \"you\"",{"trace":"1"}],["1795867200500000000","{\"a\":1}"]]}]}"#;
    let message =
        request(r#"{job="app", level="a\"b"}"#, &[entry(b"hi \"you\"", &[("trace", "1")]), entry(b"{\"a\":1}", &[])]);
    let expected = [
        r#"{"time":"2026-11-28T12:00:00.5Z","line":"hi \"you\"","labels":{"job":"app","level":"a\"b"},"metadata":{"trace":"1"}}"#,
        r#"{"time":"2026-11-28T12:00:00.5Z","line":"{\"a\":1}","labels":{"job":"app","level":"a\"b"}}"#,
    ]
    .map(|payload| Ok(payload.to_owned()));
    assert_eq!(payloads(&[JSON], json), expected);
    assert_eq!(payloads(&[PROTO], &snappy(&message)), expected);
    // Without a content type.
    assert_eq!(payloads(&[], json), expected);
    assert_eq!(payloads(&[], &snappy(&message)), expected);
    assert_eq!(push(&[JSON], json).unwrap().1, Reply::empty(204));
}

#[test]
fn entries_of_first_versions_are_read() {
    let body = br#"{"streams":[{"labels":"{job=\"a\"}","entries":[{"ts":"2026-11-28T13:00:00.123456789+01:00","line":"x"},{"ts":"2026-11-28T12:00:00.123456789Z","line":"y"},{"ts":"now","line":"z"},{"line":"z"}]}]}"#;
    let expected = [
        Ok(r#"{"time":"2026-11-28T12:00:00.123456Z","line":"x","labels":{"job":"a"}}"#),
        Ok(r#"{"time":"2026-11-28T12:00:00.123456789Z","line":"y","labels":{"job":"a"}}"#),
        Err("the value is not a time such as 2026-11-21T13:00:00Z"),
        Err("the line is no array of a time and a text: send [\"NANOSECONDS\", \"TEXT\"]"),
    ];
    assert_eq!(payloads(&[JSON], body), expected.map(|item| item.map(str::to_owned).map_err(str::to_owned)));
}

#[test]
fn rejected_lines_are_named_in_text() {
    let body = br#"{"streams":[{"stream":{"job":"a"},"values":[["1","x"],["y","z"],["1",2],[]]},{"stream":1,"values":[["1","x"]]}]}"#;
    let (taken, reply) = push(&[JSON], body).unwrap();
    assert_eq!(taken.iter().filter(|record| record.payload.is_ok()).count(), 1);
    let expected = "400 4 of 5 lines are rejected, the others are stored; line 2: the time is no number of nanoseconds since 1970\n";
    assert_eq!(text(&reply), expected);
    assert_eq!(reply.content_type, Some(crate::TEXT));
    let (taken, _) = push(&[PROTO], &snappy(&request("{job=}", &[entry(b"x", &[])]))).unwrap();
    assert!(taken[0].payload.as_ref().unwrap_err().starts_with("the labels of the stream are invalid"));
}

#[test]
fn lines_that_are_not_utf_8_are_repaired() {
    let message = request("{}", &[entry(b"\xff!", &[])]);
    let expected = "{\"time\":\"2026-11-28T12:00:00.5Z\",\"line\":\"\u{fffd}!\",\"labels\":{}}";
    assert_eq!(payloads(&[PROTO], &snappy(&message)), [Ok(expected.to_owned())]);
}

#[test]
fn invalid_bodies_are_rejected() {
    for body in [
        &b""[..],
        b" ",
        b"x",
        b"{}",
        b"[]",
        b"{\"streams\":1}",
        b"{\"streams\":[1]}",
        b"{\"streams\":[{\"values\":1}]}",
    ] {
        let reply = push(&[JSON], body).unwrap_err();
        assert_eq!((reply.status, reply.content_type), (400, Some(crate::TEXT)), "{body:?}");
    }
    let deep = "{\"a\":".repeat(100_000);
    assert_eq!(push(&[JSON], deep.as_bytes()).unwrap_err().status, 400);
    let cut = request("{}", &[entry(b"x", &[])]);
    for body in [&b"\xff\xff"[..], b"x", &snappy(&cut[..cut.len() - 1]), &snappy(&[0x0a, 2, 0x12, 9])] {
        assert_eq!(push(&[PROTO], body).unwrap_err().status, 400, "{body:?}");
    }
    assert_eq!(push(&[PROTO], &[0]).unwrap().1.status, 204);
    assert_eq!(push(&[JSON], b"{\"streams\":[]}").unwrap().1.status, 204);
}

#[test]
fn declared_length_is_checked_before_decompression() {
    // 4 GiB in five bytes.
    let bomb = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    assert_eq!(push(&[PROTO], &bomb).unwrap_err().status, 413);
    let call = call(&intake(), "POST", PUSH, &[PROTO]);
    assert!(call.needed_bytes(&bomb) <= limits::BATCH_BYTES_MAX + 5 * limits::EVENT_BYTES_MAX);
    assert!(call.needed_bytes(&snappy(&vec![0; 5_000_000])) >= 5_000_000);
}

#[test]
fn large_parts_are_rejected() {
    let large = vec![b'x'; limits::EVENT_BYTES_MAX];
    let message = request("{}", &[entry(&large, &[]), entry(b"x", &[])]);
    let outcomes = payloads(&[PROTO], &snappy(&message));
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
    let metadata = [("a", &*"\u{1}".repeat(limits::EVENT_BYTES_MAX / 6 + 1))];
    let outcomes = payloads(&[PROTO], &snappy(&request("{}", &[entry(b"x", &metadata)])));
    assert!(outcomes[0].is_err());
    let large = String::from_utf8(large).unwrap();
    let body = format!(r#"{{"streams":[{{"stream":{{}},"values":[["1","{large}"],["1","x"]]}}]}}"#);
    let outcomes = payloads(&[JSON], body.as_bytes());
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
    // Labels that are sent once would be stored a thousand times.
    let values = r#"["1","x"],"#.repeat(1_000);
    let body = format!(r#"{{"streams":[{{"stream":{{"a":"{}"}},"values":[{values}["1","x"]]}}]}}"#, &large[64..]);
    assert_eq!(push(&[JSON], body.as_bytes()).unwrap_err().status, 413);
}

#[test]
fn snappy_is_no_coding_of_http() {
    assert!(call(&intake(), "POST", PUSH, &[PROTO]).decodes("Snappy"));
    assert!(!call(&intake(), "POST", PUSH, &[PROTO]).decodes("br"));
    assert!(!call(&intake(), "POST", PUSH, &[JSON]).decodes("snappy"));
}

#[test]
fn routes_are_those_of_loki() {
    let intake = intake();
    let ready = fixed(&intake, "GET", "/ready", &[]);
    assert_eq!((ready.status, &*ready.body), (200, &b"ready\n"[..]));
    let lines = lines(&[]);
    for (method, path, expected) in [
        ("GET", PUSH, "Methods(\"POST\")"),
        ("POST", "/ready", "Methods(\"GET, HEAD\")"),
        ("POST", "/loki/api/v1/query", "Unknown"),
        ("POST", "", "Unknown"),
    ] {
        assert_eq!(format!("{:?}", intake.route(&head(method, path, &lines))), expected, "{path}");
    }
    for path in ["/api/v1/push", "/api/prom/push", "/loki/api/v1/push/"] {
        assert!(matches!(intake.route(&head("POST", path, &lines)), IntakeRoute::Ingest(_)), "{path}");
    }
    assert_eq!(KIND.name, "loki");
}

#[test]
fn temporary_trouble_is_503() {
    let problem = Problem { kind: ProblemKind::Unavailable, ..Problem::invalid("wait") };
    let reply = call(&intake(), "POST", PUSH, &[]).refusal(&problem);
    assert_eq!((text(&reply).as_str(), reply.lines.as_str()), ("503 wait\n", "retry-after: 1\r\n"));
}

#[test]
fn fuzz_loki() {
    let proto = request(r#"{job="app", level="a\"b"}"#, &[entry(b"hi", &[("trace", "1")]), entry(b"x", &[])]);
    let samples: [&[u8]; 4] = [
        &proto,
        &snappy(&proto),
        br#"{"streams":[{"stream":{"job":"app"},"values":[["1795867200500000000","hi",{"trace":"1"}],["1","x"]]}]}"#,
        br#"{"streams":[{"labels":"{job=\"a\"}","entries":[{"ts":"2026-11-28T12:00:00Z","line":"y"}]}]}"#,
    ];
    let tokens: [&[u8]; 12] = [
        b"\"stream\":",
        b"\"values\":",
        b"\"labels\":",
        b"\"entries\":",
        b"\"line\":",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\u0041",
        b"\x0a\x00",
        b"\xff\xff\xff\xff\x0f",
    ];
    fuzz::run("loki", Corpus { samples: &samples, tokens: &tokens }, |input| {
        // Mutations of compressed bytes rarely get far: messages are mutated as well.
        [(PROTO, input.to_vec()), (PROTO, snappy(input)), (JSON, input.to_vec())].map(|(header, body)| {
            match push(&[header], &body) {
                Ok((taken, reply)) => {
                    for payload in taken.iter().filter_map(|record| record.payload.as_ref().ok()) {
                        let kind = json::check(payload.as_bytes()).map_err(|error| error.kind);
                        assert!(!matches!(kind, Err(json::JsonErrorKind::Syntax)), "{payload}");
                    }
                    (taken.len(), reply.status)
                }
                Err(reply) => (0, reply.status),
            }
        })
    });
}

#[test]
fn tenants_have_separate_scopes() {
    let scope = |headers: &[(&str, &str)]| call(&intake(), "POST", PUSH, headers).scope().to_owned();
    assert_eq!([scope(&[JSON]), scope(&[JSON, ("X-Scope-OrgID", "a")])], ["", "a"]);
}
