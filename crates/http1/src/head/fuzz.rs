//! Any bytes as the head of a request: an accepted head ends at the same byte for every parser.

use testkit::fuzz::{Corpus, run};

use super::{Parsed, may_end, parse};

const SAMPLES: &[&[u8]] = &[
    b"POST /ingest/event?type=a HTTP/1.1\r\nHost: a:1\r\nContent-Length: 2\r\nIdempotency-Key: 1\r\n\r\n{}",
    b"\r\nPOST /ingest/batch HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
    b"GET http://a/readyz?x=%20 HTTP/1.0\r\nConnection: keep-alive, close\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
    b"OPTIONS * HTTP/1.1\nHost: [::1]:80\nAuthorization: Bearer a.b\n\n",
];
const TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b": ",
    b" HTTP/1.1\r\n",
    b"Host: a\r\n",
    b"Content-Length: 1\r\n",
    b"Content-Length: 18446744073709551616\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Connection: upgrade\r\n",
    b"\0",
    b"\x80",
    b"%00",
    b" \t",
];

#[test]
fn fuzz_request_head() {
    run("request head", Corpus { samples: SAMPLES, tokens: TOKENS }, |bytes| {
        let outcome = parse(bytes, 0);
        let Ok(Parsed::Head(head, length)) = &outcome else {
            return outcome.map(|_| None).map_err(|refused| format!("{refused:?}"));
        };
        assert!(*length <= bytes.len());
        let text = &bytes[..*length];
        assert!(text.ends_with(b"\n") && !text.contains(&0));
        let count = |byte: u8| text.iter().filter(|found| **found == byte).count();
        assert!(count(b'\r') == 0 || count(b'\r') == count(b'\n'), "one reader ends a line where another doesn't");
        assert!(may_end(text, 0), "a head in one piece is noticed");
        // What follows a head doesn't change it.
        assert!(matches!(parse(text, 0), Ok(Parsed::Head(_, same)) if same == *length));
        Ok(Some((std::mem::discriminant(&head.framing), head.host().is_some(), head.expects_continue)))
    });
}
