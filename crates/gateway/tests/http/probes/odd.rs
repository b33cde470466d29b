//! Requests that look odd but have one meaning.

use super::probe::{Outcome, Probe, answered as answered_with, begun, chunked, good, post};

const BODY: &str = "[1,2]";

/// Valid header lines (RFC 9112 §5, RFC 9110 §5).
const FIELDS: &[&str] = &[
    "Content-Length: 005",
    "content-length:5",
    "CONTENT-LENGTH:\t 5 \t",
    "Content-Length: 5\r\nX:",
    "Content-Length: 5\r\nX: \t ",
    "Content-Length: 5\r\nX: a\tb : c",
    "Content-Length: 5\r\nX: \u{e9}",
    "Content-Length: 5\r\n!#$%&'*+-.^_`|~1a: b",
    "Content-Length: 5\r\nX: y\r\nX: z",
    // These are other names than they seem.
    "Content-Length: 5\r\nContent_Length: 7",
    "Content-Length: 5\r\nX-Content-Length: 7",
    "Content-Length: 5\r\nTransfer_Encoding: chunked",
    "Content-Length: 5\r\nTransfer-Encodings: chunked",
    "Content-Length: 5\r\nTE: chunked",
    "Content-Length: 5\r\nTrailer: Content-Length",
    // The named headers are for this hop only, and this is the last hop.
    "Content-Length: 5\r\nConnection: content-length, host, keep-alive",
    "Content-Length: 5\r\nConnection: transfer-encoding",
    "Content-Length: 5\r\nConnection: closed, not-close",
    "Content-Length: 5\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA",
    "Content-Length: 5\r\nUpgrade: websocket",
    "Content-Length: 5\r\nKeep-Alive: timeout=0, max=0",
    "Content-Length: 5\r\nExpect: 100-continue",
    "Content-Length: 5\r\nExpect: 100-Continue",
];

/// Targets and hosts (RFC 9112 §3.2, RFC 9110 §7.2).
const STARTS: &[&str] = &[
    "POST /ingest/event? HTTP/1.1\r\nHost: x",
    "POST /ingest/event?a=/../b&c[]=%20;'()*!~ HTTP/1.1\r\nHost: x",
    "POST http://x/ingest/event HTTP/1.1\r\nHost: x",
    "POST HTTP://X/ingest/event?a HTTP/1.1\r\nHost: x",
    "POST http://x:80/ingest/event HTTP/1.1\r\nHost: x:80",
    "POST http://[::1]:80/ingest/event HTTP/1.1\r\nHost: [::1]:80",
    "POST /ingest/event HTTP/1.1\r\nHost:",
    "POST /ingest/event HTTP/1.1\r\nHost: x:",
    "POST /ingest/event HTTP/1.1\r\nHost: [::]",
    "POST /ingest/event HTTP/1.1\r\nHost: [2001:db8::1.2.3.4]:80",
    "POST /ingest/event HTTP/1.1\r\nHost: a-b_c.d~e",
    "POST /ingest/event HTTP/1.1\r\nX: y\r\nHost: x",
    "POST /ingest/event HTTP/1.0\r\nConnection: keep-alive",
    "POST /ingest/event HTTP/1.0\r\nConnection: TE, Keep-Alive\r\nExpect: 100-continue\r\nHost: x",
    // §2.2: at least one empty line before a request is skipped.
    "\r\nPOST /ingest/event HTTP/1.1\r\nHost: x",
    "\r\n\r\nPOST /ingest/event HTTP/1.1\r\nHost: x",
];

pub(super) fn answered() -> Vec<Probe> {
    let fields = FIELDS.iter().map(|fields| good("RFC 9112 §5", post(fields, BODY)));
    let starts = STARTS.iter().map(|start| good("RFC 9112 §3.2", begun(start)));
    let codings = ["Transfer-Encoding: CHUNKED", "transfer-encoding:\t chunked \t"]
        .map(|field| good("RFC 9112 §7", post(field, "5\r\n[1,2]\r\n0\r\n\r\n")));
    fields.chain(starts).chain(codings).chain(other_answers()).collect()
}

/// Requests that are valid but not supported: their bodies are no requests.
fn other_answers() -> Vec<Probe> {
    let inner = "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n3";
    let with_inner = |start: &str| format!("{start}\r\nHost: x\r\nContent-Length: {}\r\n\r\n{inner}", inner.len());
    vec![
        answered_with("RFC 9112 §6", 400, with_inner("POST /ingest/event HTTP/1.1")),
        answered_with("RFC 9112 §6", 400, chunked(&format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()))),
        answered_with("RFC 9110 §9.1", 405, with_inner("post /ingest/event HTTP/1.1")),
        answered_with("RFC 9110 §9.1", 405, with_inner("BREW /ingest/event HTTP/1.1")),
        answered_with("RFC 9110 §9.3.1", 405, with_inner("GET /ingest/event HTTP/1.1")),
        answered_with("RFC 9110 §9.3.8", 405, with_inner("TRACE /ingest/event HTTP/1.1")),
        answered_with("RFC 9110 §15.5.5", 404, with_inner("POST / HTTP/1.1")),
        answered_with("RFC 9110 §15.5.5", 404, with_inner("POST //ingest/event HTTP/1.1")),
        answered_with("RFC 9110 §15.5.5", 404, with_inner("POST /ingest/event/../event HTTP/1.1")),
        answered_with("RFC 9110 §15.5.5", 404, with_inner("POST /ingest%2fevent HTTP/1.1")),
        answered_with("RFC 9110 §9.3.7", 204, with_inner("OPTIONS /ingest/event HTTP/1.1")),
        answered_with("RFC 9112 §3.2.4", 204, with_inner("OPTIONS * HTTP/1.1")),
        answered_with("RFC 9110 §9.3.7", 204, "OPTIONS /ingest/event HTTP/1.1\r\nHost: x\r\n\r\n"),
        answered_with("RFC 9110 §8.6", 400, post("X: y", "")),
    ]
}

/// Valid requests after which the connection is closed.
pub(super) fn last() -> Vec<Probe> {
    let row = |section, status, bytes: Vec<u8>| Probe { section, bytes, outcome: Outcome::Last(status) };
    let closes = |value: &str| post(&format!("Content-Length: 5\r\nConnection: {value}"), BODY);
    let old = |line: &str| begun(&format!("POST /ingest/event HTTP/1.0{line}"));
    let missing = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n";
    vec![
        row("RFC 9112 §9.6", 200, closes("close")),
        row("RFC 9112 §9.6", 200, closes("CLOSE")),
        row("RFC 9112 §9.6", 200, closes("keep-alive, close")),
        row("RFC 9112 §9.6", 200, closes("te ,, close\r\nConnection: keep-alive")),
        row("RFC 9112 §9.3", 200, old("")),
        row("RFC 9112 §9.3", 200, old("\r\nHost: x\r\nConnection: close, keep-alive")),
        // A body of unknown length that isn't needed isn't read.
        row("RFC 9112 §9.6", 404, missing.into()),
        row("RFC 9110 §10.1.1", 417, post("Content-Length: 5\r\nExpect: 200-ok", BODY)),
    ]
}
