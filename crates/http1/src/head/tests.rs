//! Accepted heads, rejected heads, and the end of a head.

use proptest::prelude::*;

use super::*;

fn code(text: &str) -> Option<RequestErrorKind> {
    parse(text.as_bytes(), 0).err().map(|problem| problem.kind)
}

fn parse_whole(text: &str) -> (Head<'_>, usize) {
    match parse(text.as_bytes(), 0).unwrap() {
        Parsed::Head(head, length) => (head, length),
        other => panic!("{text:?}: {other:?}"),
    }
}

fn parsed(text: &str) -> Head<'_> {
    let (head, length) = parse_whole(text);
    assert_eq!(length, text.len());
    head
}

#[test]
fn valid_heads_show_the_body_framing() {
    for (fields, length) in [
        ("Host: a", Some(0)),
        ("host:a\r\nContent-Type: x\r\nCONTENT-LENGTH:  12 ", Some(12)),
        ("Host: a\r\nTransfer-Encoding: Chunked", None),
        ("Host: a\r\nTE: trailers\r\nConnection: close\r\nHostile: x", Some(0)),
        ("Host:", Some(0)),
        ("Host: [::1]:80", Some(0)),
        ("Host: a-b.c:", Some(0)),
    ] {
        let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
        match (parsed(&text).framing, length) {
            (Framing::Length(found), Some(length)) => assert_eq!(found, length, "{fields}"),
            (Framing::Chunked(_), None) => {}
            (found, _) => panic!("{fields}: {found:?}"),
        }
        assert_eq!(parse_whole(&(text.clone() + "rest")).1, text.len());
        for cut in 0..text.len() {
            assert!(matches!(parse(&text.as_bytes()[..cut], 0), Ok(Parsed::Part)), "{cut} of {text:?}");
        }
    }
    assert_eq!(parsed("\r\nGET / HTTP/1.0\r\n\r\n").method, Method::Get);
    assert!(matches!(parse(b"\r\n\r\n", 0), Ok(Parsed::EmptyLines(2))));
    assert!(matches!(parse(b"\r\n\r\n", EMPTY_LINES_MAX - 2), Ok(Parsed::EmptyLines(2))));
    assert!(parse(b"\r\n\r\n", EMPTY_LINES_MAX - 1).is_err(), "earlier empty lines count");
    assert!(matches!(parse(b"\r\n\r", 0), Ok(Parsed::Part)));
}

#[test]
fn ambiguous_heads_are_rejected() {
    for fields in [
        "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
        "Host: a\r\nContent-Length: 1\r\nContent-Length: 1",
        "Host: a\r\nContent-Length: +1",
        "Host: a\r\nContent-Length: -1",
        "Host: a\r\nContent-Length: 0x1",
        "Host: a\r\nContent-Length: 1, 1",
        "Host: a\r\nContent-Length: 1 1",
        "Host: a\r\nContent-Length:",
        "Host: a\r\nContent-Length: 1000000000000000000",
        "Host: a\r\nContent-Length : 1",
        "Host: a\r\nTransfer-Encoding: xchunked",
        "Host: a\r\nTransfer-Encoding: gzip, chunked",
        "Host: a\r\nTransfer-Encoding: chunked, chunked",
        "Host: a\r\nTransfer-Encoding: \"chunked\"",
        "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Host: a\r\nTransfer-Encoding : chunked",
        "Host: a\r\nTransfer-Encoding:\x0bchunked",
        "Host: a\r\nX: y\r\n z",
        "Host: a\r\nX: y\r\n\tz",
        "Host: a\nX: y",
        "Host: a\r\nX: y\rz",
        "Host: a\r\nX: y\0",
        "Host: a\r\nX",
        "Host: a\r\n: y",
        "Host: a\r\nX y: z",
        "Host: a\r\nHost: a",
        "Host: a b",
        "Host: a@b",
        "Host: a/b",
        "Host: a:b",
        "Host: a:1:2",
        "Host: [::1",
        "Host: [::1]x",
        "Host: []",
        "Host: [:::]",
        "Host: %zz",
        "Host: a\u{e9}",
        "Host: a\r\nForebay-Type: x\r\nForebay-Type: y",
        "Host: a\r\nIdempotency-Key: x\r\nidempotency-key: x",
        "X: y",
        " Host: a",
    ] {
        assert_eq!(
            code(&format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n")),
            Some(RequestErrorKind::BadRequest),
            "{fields:?}"
        );
    }
}

#[test]
fn request_lines_are_parsed_strictly() {
    for line in [
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked",
        "POST  / HTTP/1.1\r\nHost: a",
        "POST /  HTTP/1.1\r\nHost: a",
        "POST / HTTP/1.1 \r\nHost: a",
        "POST / HTTP/2.0\r\nHost: a",
        "POST / HTTP/1.2\r\nHost: a",
        "POST / http/1.1\r\nHost: a",
        "POST /\r\nHost: a",
        "PO ST / HTTP/1.1\r\nHost: a",
        "P\"ST / HTTP/1.1\r\nHost: a",
        "POST a HTTP/1.1\r\nHost: a",
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80",
        "CONNECT / HTTP/1.1\r\nHost: a",
        "POST * HTTP/1.1\r\nHost: a",
        "GET http://b/ HTTP/1.1\r\nHost: a",
        "GET http://@@/ HTTP/1.0\r\nX: y",
        "GET http://a:80/ HTTP/1.1\r\nHost: a",
        "GET /a\tb HTTP/1.1\r\nHost: a",
        "\nGET / HTTP/1.1\r\nHost: a",
        "\r\n\nGET / HTTP/1.1\r\nHost: a",
        "\rGET / HTTP/1.1\r\nHost: a",
        "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a",
        " GET / HTTP/1.1\r\nHost: a",
        "GET / HTTP/1.1\nHost: a",
    ] {
        assert_eq!(code(&format!("{line}\r\n\r\n")), Some(RequestErrorKind::BadRequest), "{line:?}");
    }
    assert_eq!(parsed("GET HTTP://A/b?c HTTP/1.1\r\nHost: a\r\n\r\n").target.path, "/b");
}

#[test]
fn connection_persistence_follows_the_version() {
    for (text, persistence) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Persistence::Open),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", Persistence::KeptAlive),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, Close\r\n\r\n", Persistence::Close),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nConnection: close\r\n\r\n", Persistence::Close),
        ("GET / HTTP/1.0\r\n\r\n", Persistence::Close),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", Persistence::KeptAlive),
    ] {
        assert_eq!(parsed(text).persistence, persistence, "{text:?}");
    }
}

#[test]
fn only_100_continue_is_supported() {
    assert!(parsed("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
    assert!(!parsed("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
    assert_eq!(code("GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n"), Some(RequestErrorKind::Expectation));
}

#[test]
fn head_size_is_limited_complete_or_not() {
    let start = "POST / HTTP/1.1\r\nHost: a\r\nX: ";
    let fits = HEADER_BYTES_MAX - start.len() - 4;
    let text = |filler: usize, end: &str| start.to_owned() + &"x".repeat(filler) + end;
    assert_eq!(code(&text(fits, "\r\n\r\n")), None);
    assert_eq!(code(&text(fits + 1, "\r\n\r\n")), Some(RequestErrorKind::HeaderTooLarge));
    assert_eq!(code(&text(HEADER_BYTES_MAX, "")), Some(RequestErrorKind::HeaderTooLarge));
    let line = "GET /".to_owned() + &"x".repeat(HEADER_BYTES_MAX);
    assert_eq!(code(&line), Some(RequestErrorKind::TargetTooLong));
    assert_eq!(code(&(line + " HTTP/1.1\r\nHost: a\r\n\r\n")), Some(RequestErrorKind::TargetTooLong));
    let lines = |lines: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(lines - 1));
    assert_eq!(code(&lines(HEADERS_MAX)), None);
    assert_eq!(code(&lines(HEADERS_MAX + 1)), Some(RequestErrorKind::HeaderTooLarge));
}

proptest! {
    #[test]
    fn head_end_is_found_in_any_split(cuts in prop::collection::vec(1..5_usize, 0..30), bare in any::<bool>()) {
        let text = if bare { "GET / HTTP/1.1\r\nHost: a\n\n" } else { "GET / HTTP/1.1\r\nHost: a\r\n\r\n" };
        let mut known = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            let now = (known + cut).min(text.len());
            prop_assert_eq!(may_end(&text.as_bytes()[..now], known), now == text.len());
            if now == text.len() {
                break;
            }
            known = now;
        }
    }

    #[test]
    fn accepted_heads_end_alike_for_every_reader(
        changes in prop::collection::vec((0..SOUND.len(), prop::sample::select(b"\r\n \t:;,\0Hh1\x80".to_vec())), 1..4)
    ) {
        let mut bytes = SOUND.to_vec();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        if let Ok(Parsed::Head(_, length)) = parse(&bytes, 0) {
            let head = &bytes[..length];
            let start = head.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            let end = start + head[start..].windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            prop_assert_eq!(length, end);
            let count = |byte: u8| head.iter().filter(|found| **found == byte).count();
            prop_assert_eq!(count(b'\r'), count(b'\n'));
            prop_assert!(!head.contains(&0));
        }
    }
}

const SOUND: &[u8] = b"\r\nPOST /a HTTP/1.1\r\nHost: a:1\r\nX: y\r\nContent-Length: 1\r\n\r\n1";
