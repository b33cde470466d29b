//! What SDKs post, and what they get.

use std::sync::Arc;

use testkit::fuzz::{self, Corpus};

use super::{KIND, Segment};
use crate::testing::{Taken, call, fixed, head, lines, post};
use crate::{Detail, Intake, IntakeRoute, Problem, ProblemKind, RecordVerdict, Records, Reply, Verdicts};

fn intake() -> Arc<dyn Intake> {
    Arc::new(Segment)
}

fn posted(target: &str, body: &str) -> (Vec<Taken>, Reply) {
    post(&mut *call(&intake(), "POST", target, &[]), body.as_bytes(), &[]).unwrap()
}

/// Type, id and payload of each record.
fn stored(target: &str, body: &str) -> Vec<(String, String, Result<String, String>)> {
    let id = |record: &Taken| record.id.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
    posted(target, body).0.into_iter().map(|record| (record.type_name.clone(), id(&record), record.payload)).collect()
}

fn refusal(target: &str, body: &[u8]) -> String {
    let reply = post(&mut *call(&intake(), "POST", target, &[]), body, &[]).unwrap_err();
    format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body))
}

#[test]
fn message_is_stored_without_transport_members() {
    let body =
        r#"{"userId":"u","event":"Paid","messageId":"m1","sentAt":"x","_metadata":{},"writeKey":"k","type":"track"}"#;
    let expected = r#"{"userId":"u","event":"Paid","messageId":"m1","type":"track"}"#;
    let expected = vec![("segment.track".to_owned(), "m1".to_owned(), Ok(expected.to_owned()))];
    for target in ["/v1/track", "/v1/t", "/v1/track/", "/beacon/v1/track", "/api/s/track", "/api/s/s2s/track"] {
        assert_eq!(stored(target, body), expected, "{target}");
    }
}

#[test]
fn paths_have_types() {
    for (name, letter) in [("identify", "i"), ("page", "p"), ("screen", "s"), ("group", "g"), ("alias", "a")] {
        let expected = vec![(format!("segment.{name}"), String::new(), Ok(format!(r#"{{"a":1,"type":"{name}"}}"#)))];
        assert_eq!(stored(&format!("/v1/{name}"), r#"{"a":1}"#), expected);
        assert_eq!(stored(&format!("/v1/{letter}"), r#"{"a":1}"#), expected);
    }
}

#[test]
fn batch_shares_context_and_integrations() {
    let body = r#"{"batch":[{"type":"track","messageId":1,"context":{"own":1}},{"type":"Page View","sentAt":2},{"type":1},3],"context":{"library":"x"},"integrations":{"All":true},"sentAt":"y"}"#;
    let text = str::to_owned;
    let expected = vec![
        (
            text("segment.track"),
            text("1"),
            Ok(text(r#"{"type":"track","messageId":1,"context":{"own":1},"integrations":{"All":true}}"#)),
        ),
        (
            text("segment.page_view"),
            text(""),
            Ok(text(r#"{"type":"Page View","context":{"library":"x"},"integrations":{"All":true}}"#)),
        ),
        (text(""), text(""), Err(text("`type` is missing or no text: send the message's type, such as \"track\""))),
        (text(""), text(""), Err(text("the message is a number: send an object"))),
    ];
    for target in ["/v1/batch", "/v1/b", "/v1/import", "/beacon/v1/batch"] {
        assert_eq!(stored(target, body), expected, "{target}");
        let reply = posted(target, body).1;
        assert_eq!((reply.status, &*reply.body), (200, &br#"{"success":true}"#[..]), "{target}");
    }
}

#[test]
fn half_a_surrogate_concerns_one_message() {
    let body = r#"{"batch":[{"type":"track","a":"\ud83d"},{"type":"track"}]}"#;
    let payloads: Vec<_> = stored("/v1/batch", body).into_iter().map(|(_, _, payload)| payload.unwrap()).collect();
    assert_eq!(payloads, [r#"{"type":"track","a":"\ud83d"}"#, r#"{"type":"track"}"#]);
}

#[test]
fn bodies_that_are_no_json_are_rejected() {
    for body in [&b"x"[..], b"", b" ", b"{\"a\":\"\xff\"}", b"{}{}", b"writeKey=1&data=2"] {
        let response = refusal("/v1/batch", body);
        assert!(response.starts_with(r#"400 {"success":false,"message":""#), "{response}");
        assert!(response.ends_with(r#""code":"invalid_json"}"#), "{response}");
    }
    // The gateway has one code for all of these.
    let mut call = call(&intake(), "POST", "/v1/batch", &[]);
    assert!(crate::testing::decode(&mut *call, b"x").is_err());
    assert!(call.refusal(&Problem::invalid("")).body.ends_with(br#""code":"invalid_json"}"#));
    for body in ["[]", "1", "{}", r#"{"batch":{}}"#] {
        assert!(refusal("/v1/batch", body.as_bytes()).ends_with(r#""code":"record"}"#), "{body}");
    }
    let deep = "{\"a\":".repeat(100_000);
    assert!(refusal("/v1/track", deep.as_bytes()).starts_with("400 "));
}

#[test]
fn large_parts_are_rejected() {
    let part = "x".repeat(limits::EVENT_BYTES_MAX);
    let message = format!(r#"{{"type":"track","a":"{part}"}}"#);
    let body = format!(r#"{{"batch":[{message}]}}"#);
    assert_eq!(stored("/v1/batch", &body), [("segment.track".to_owned(), String::new(), Ok(message))]);
    let body = format!(r#"{{"batch":[{{"type":"track"}}],"context":"{part}"}}"#);
    assert!(refusal("/v1/batch", body.as_bytes()).starts_with("413 "));
    let many = r#"{"type":"track"},"#.repeat(200);
    let body = format!(r#"{{"batch":[{many}{{"type":"track"}}],"context":"{}"}}"#, &part[..part.len() - 2]);
    assert!(refusal("/v1/batch", body.as_bytes()).starts_with("413 "));
}

#[test]
fn write_key_is_a_token() {
    let token = |target: &str, headers: &[(&str, &str)], body: &str| {
        let call = call(&intake(), "POST", target, headers);
        assert!(call.may_have_token());
        call.token(body.as_bytes()).map(std::borrow::Cow::into_owned)
    };
    assert_eq!(token("/v1/t", &[], r#"{"writeKey":"a\u0041"}"#).as_deref(), Some("aA"));
    assert_eq!(token("/beacon/v1/batch?writeKey=q%2B", &[], "").as_deref(), Some("q+"));
    assert_eq!(token("/api/s/track", &[("X-Write-Key", "h")], "").as_deref(), Some("h"));
    for body in ["", "{}", r#"{"writeKey":1}"#, r#"{"writeKey":"a""#, r#"["writeKey","a"]"#] {
        assert_eq!(token("/v1/t", &[], body), None, "{body}");
    }
}

#[test]
fn routes_are_those_of_segment() {
    let intake = intake();
    assert_eq!(fixed(&intake, "POST", "/v1/m", &[]).status, 200);
    let lines = lines(&[]);
    for (method, path, expected) in [
        ("GET", "/v1/track", "Methods(\"POST\")"),
        ("GET", "/v1/m", "Methods(\"POST\")"),
        ("POST", "/v1/x", "Unknown"),
        ("POST", "/v1/", "Unknown"),
        ("POST", "", "Unknown"),
        ("POST", "/v2/track", "Unknown"),
    ] {
        assert_eq!(format!("{:?}", intake.route(&head(method, path, &lines))), expected, "{path}");
    }
    assert!(matches!(intake.route(&head("POST", "/v1/b", &lines)), IntakeRoute::Ingest(_)));
    assert_eq!(KIND.name, "segment");
}

#[test]
fn temporary_trouble_is_503() {
    let problem = Problem { kind: ProblemKind::Unavailable, code: "overload", ..Problem::invalid("wait") };
    let reply = call(&intake(), "POST", "/v1/t", &[]).refusal(&problem);
    assert_eq!((reply.status, reply.lines.as_str()), (503, "retry-after: 1\r\n"));
    assert_eq!(reply.body, br#"{"success":false,"message":"wait","code":"overload"}"#);
}

#[test]
fn fuzz_segment() {
    let samples: [&[u8]; 3] = [
        br#"{"type":"track","event":"a","messageId":"m","writeKey":"k","sentAt":"t","_metadata":{},"context":{}}"#,
        br#"{"batch":[{"type":"track","messageId":"m"},{"type":"page"},{}],"context":{"a":1},"integrations":{},"writeKey":"k"}"#,
        br#"{"batch":[]}"#,
    ];
    let tokens: [&[u8]; 12] = [
        b"\"type\":",
        b"\"batch\":",
        b"\"messageId\":",
        b"\"writeKey\":",
        b"\"context\":",
        b"null",
        b"[",
        b"{",
        b"}",
        b"]",
        b"\\ud800",
        b"\"",
    ];
    let intake = intake();
    fuzz::run("segment", Corpus { samples: &samples, tokens: &tokens }, |input| {
        ["/v1/batch", "/v1/t"].map(|target| {
            let mut call = call(&intake, "POST", target, &[]);
            let has_token = call.token(input).is_some();
            match post(&mut *call, input, &[]) {
                Ok((taken, reply)) => {
                    for payload in taken.iter().filter_map(|record| record.payload.as_ref().ok()) {
                        let kind = json::check(payload.as_bytes()).map_err(|error| error.kind);
                        assert!(!matches!(kind, Err(json::JsonErrorKind::Syntax)), "{payload}");
                    }
                    (taken.len(), reply.status, has_token)
                }
                Err(reply) => {
                    assert!(json::check(&reply.body).is_ok());
                    assert!(!has_token || reply.body.ends_with(br#""code":"record"}"#));
                    (0, reply.status, has_token)
                }
            }
        })
    });
}

#[test]
fn unknown_types_are_no_success() {
    let response = |rejected: &[usize], code| {
        let mut call = call(&intake(), "POST", "/v1/batch", &[]);
        let mut verdicts = Verdicts::accepted(2);
        for index in rejected {
            verdicts.reject(*index, RecordVerdict::Rejected, || Detail { code, detail: "no type".into() });
        }
        call.decode(b"{\"batch\":[]}", &mut Records::new(0, 1, &mut |_| ())).unwrap();
        call.response(&verdicts).status
    };
    assert_eq!(response(&[0, 1], "unknown_type"), 400);
    assert_eq!([response(&[1], "unknown_type"), response(&[0, 1], "schema")], [200, 200]);
}
