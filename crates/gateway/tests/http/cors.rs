//! Cross-origin requests: the allowed origins and methods.

use gateway::{ErrorCode, GatewayOptions, RouteName, StatusClass};

use crate::fixture::{Answer, Fixture, named_types, open_types};

fn ask(fixture: &Fixture, request: &str, headers: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("{request} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"));
    client.answer()
}

/// The headers for browsers.
fn cors_headers(answer: &Answer) -> Vec<(&str, &str)> {
    let is_cors = |name: &str| name.starts_with("access-control-") || name == "vary";
    answer
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| is_cors(name))
        .collect()
}

fn allowing(origins: &[&str]) -> Fixture {
    let cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    Fixture::with(open_types(), GatewayOptions { cors_origins, ..GatewayOptions::default() })
}

/// A cache must keep the answers to different origins apart.
const VARIES: [(&str, &str); 1] = [("vary", "origin")];
const PREFLIGHT: &str = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";

#[test]
fn options_lists_the_methods() {
    let fixture = Fixture::with(named_types(&[("a", None)]), GatewayOptions::default());
    for (path, allow) in [
        ("*", "GET, HEAD, OPTIONS, POST"),
        ("/ingest/event", "OPTIONS, POST"),
        ("/ingest/event/unknown", "OPTIONS, POST"),
        ("/ingest/batch/a", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("/readyz", "GET, HEAD, OPTIONS"),
    ] {
        let answer = ask(&fixture, &format!("OPTIONS {path}"), &format!("Origin: http://a\r\n{PREFLIGHT}"));
        assert_eq!((answer.status, answer.header("allow")), (204, Some(allow)), "{path}");
        assert_eq!((answer.header("content-length"), cors_headers(&answer)), (None, Vec::new()));
    }
    assert_eq!(ask(&fixture, "OPTIONS /nowhere", "").code(), "not_found");
    assert_eq!(ask(&fixture, "GET *", "").code(), "bad_request");
    let mut client = fixture.connect();
    client.send("OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n12");
    assert_eq!(client.answer().status, 204);
    client.post("/ingest/event/a", "", b"1");
    assert_eq!(client.answer().status, 200);
    assert_eq!(fixture.counters().requests(RouteName::Event, StatusClass::Success), 3);
    assert_eq!(fixture.counters().refusals(ErrorCode::NotFound), 1);
}

const EXPOSED: (&str, &str) = (
    "access-control-expose-headers",
    "content-disposition, content-encoding, content-range, etag, location, retry-after",
);

#[test]
fn allowed_origin_gets_cors_headers() {
    let fixture = allowing(&["https://a.example", "http://b:81"]);
    for origin in ["https://a.example", "http://b:81"] {
        let header = format!("Origin: {origin}\r\n");
        let always = [
            ("vary", "origin"),
            ("access-control-allow-origin", origin),
            ("access-control-allow-credentials", "true"),
            EXPOSED,
        ];
        let preflight = ask(&fixture, "OPTIONS /ingest/event", &(header.clone() + PREFLIGHT));
        let more = [
            ("access-control-allow-methods", "OPTIONS, POST"),
            (
                "access-control-allow-headers",
                "authorization, content-encoding, content-type, forebay-ack, forebay-atomic, forebay-type, \
                 idempotency-key, if-none-match, x-api-key, x-retry-count",
            ),
            ("access-control-max-age", "7200"),
        ];
        assert_eq!((preflight.status, cors_headers(&preflight)), (204, [&always[..], &more].concat()));
        for (path, body, status) in [
            ("/ingest/event", "1", 200),
            ("/ingest/event", "x", 400),
            ("/ingest/batch", "1", 200),
            ("/ingest/event/A", "1", 404),
            ("/nowhere", "1", 404),
        ] {
            let answer = fixture.post(path, &header, body);
            assert_eq!((answer.status, cors_headers(&answer)), (status, always.to_vec()), "{path}");
        }
        assert_eq!(cors_headers(&ask(&fixture, "GET /healthz", &header)), always);
        assert_eq!(cors_headers(&ask(&fixture, "OPTIONS /ingest/event", &header)), always);
    }
}

#[test]
fn other_origin_gets_no_cors_headers() {
    let fixture = allowing(&["https://a.example"]);
    for origin in ["http://a.example", "https://a.example:444", "https://A.example", "null", ""] {
        let header = format!("Origin: {origin}\r\n");
        let posted = fixture.post("/ingest/event", &header, "1");
        assert_eq!((posted.code().as_str(), cors_headers(&posted)), ("cross_origin", VARIES.to_vec()));
        let preflight = ask(&fixture, "OPTIONS /ingest/event", &(header + PREFLIGHT));
        assert_eq!((preflight.status, cors_headers(&preflight)), (204, VARIES.to_vec()));
    }
    let posted = fixture.post("/ingest/event", "", "1");
    assert_eq!((posted.status, cors_headers(&posted)), (200, VARIES.to_vec()));
    let twice = fixture.post("/ingest/event", "Origin: https://a.example\r\nOrigin: https://b\r\n", "1");
    assert_eq!((twice.status, twice.code().as_str()), (400, "bad_request"));
}

#[test]
fn wildcard_allows_all_origins() {
    let fixture = allowing(&["*"]);
    let answer = fixture.post("/ingest/event", "Origin: null\r\n", "1");
    let expected = [VARIES[0], ("access-control-allow-origin", "*"), EXPOSED];
    assert_eq!(cors_headers(&answer), expected, "no credentials");
    assert_eq!(answer.status, 200);
}

#[test]
fn no_origin_is_allowed_by_default() {
    let fixture = Fixture::open();
    let posted = fixture.post("/ingest/event", "Origin: https://a.example\r\n", "1");
    assert_eq!((posted.code().as_str(), cors_headers(&posted)), ("cross_origin", VARIES.to_vec()));
}
