//! Request lines, line ends, and bytes that are invalid everywhere.

use super::probe::{Probe, bad, begun, refused as refused_with};

/// Ends of lines other than CR LF, and CRs that end none. RFC 9112 §2.2 lets a server accept a bare LF; no client needs it.
const LINE_ENDS: &[&str] = &[
    "POST /ingest/event HTTP/1.1\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\n[1,2]",
    "POST /ingest/event HTTP/1.1\nHost: x\nContent-Length: 5\n\n[1,2]",
    "POST /ingest/event HTTP/1.1\rHost: x\rContent-Length: 5\r\r[1,2]",
    "POST /ingest/event HTTP/1.1\n\rHost: x\n\rContent-Length: 5\n\r\n\r[1,2]",
    "POST /ingest/event HTTP/1.1\r\r\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\r\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\nX: a\rb\r\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest/event HTTP/1.1\r\nHost: x\r\nX\r: a\r\nContent-Length: 5\r\n\r\n[1,2]",
    "POST /ingest\r/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
    "\nPOST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
    "\rPOST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
    "\r\n\nPOST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n[1,2]",
];

/// Invalid request lines (RFC 9112 §3), with the lines after them up to the length.
const STARTS: &[&str] = &[
    " POST /ingest/event HTTP/1.1\r\nHost: x",
    "\tPOST /ingest/event HTTP/1.1\r\nHost: x",
    "\0POST /ingest/event HTTP/1.1\r\nHost: x",
    "\u{feff}POST /ingest/event HTTP/1.1\r\nHost: x",
    "POST  /ingest/event HTTP/1.1\r\nHost: x",
    "POST /ingest/event  HTTP/1.1\r\nHost: x",
    "POST\t/ingest/event HTTP/1.1\r\nHost: x",
    "POST /ingest/event\tHTTP/1.1\r\nHost: x",
    "POST /ingest/event HTTP/1.1 \r\nHost: x",
    "POST /ingest/event HTTP/1.1\t\r\nHost: x",
    "POST /ingest/event x HTTP/1.1\r\nHost: x",
    "POST\0 /ingest/event HTTP/1.1\r\nHost: x",
    "PO\u{7f}ST /ingest/event HTTP/1.1\r\nHost: x",
    "PO(ST /ingest/event HTTP/1.1\r\nHost: x",
    "P\u{d6}ST /ingest/event HTTP/1.1\r\nHost: x",
    " /ingest/event HTTP/1.1\r\nHost: x",
    "POST HTTP/1.1\r\nHost: x",
    "POST /ingest/event\r\nHost: x",
    "POST /ingest/event \r\nHost: x",
    "POST /ingest/event http/1.1\r\nHost: x",
    "POST /ingest/event HTTP/1.1x\r\nHost: x",
    "POST /ingest/event HTTP/1.10\r\nHost: x",
    "POST /ingest/event HTTP/01.1\r\nHost: x",
    "POST /ingest/event HTTP/1\r\nHost: x",
    "POST /ingest/event HTTP/1.\r\nHost: x",
    "POST /ingest/event HTTP/1,1\r\nHost: x",
    "POST /ingest/event HTTP/ 1.1\r\nHost: x",
    "POST /ingest/event HTTP/+1.1\r\nHost: x",
    "POST /ingest/event HTP/1.1\r\nHost: x",
    "POST /ingest/event HTTP 1.1\r\nHost: x",
];

/// Versions that aren't spoken here (RFC 9110 §2.5, §15.6.6). A later minor version should be read as the last one
/// that is known; there will be none.
const VERSIONS: &[&str] = &["0.9", "1.2", "1.9", "2.0", "3.0"];

/// Invalid header lines (RFC 9112 §5, RFC 9110 §5.1, §5.5).
const FIELDS: &[&str] = &[
    " X: y",
    "\tX: y",
    "X : y",
    "X\t: y",
    "X",
    "X y",
    ": y",
    "X y: z",
    "X(y): z",
    "X,: y",
    "X\0: y",
    "X\u{1}: y",
    "X\u{7f}: y",
    "X\u{e9}: y",
    "X: \0",
    "X: y\0z",
    "X: \u{1}",
    "X: \u{8}",
    "X: \u{1b}",
    "X: \u{7f}",
    "X: y\r\n z",
    "X: y\r\n\tz",
    "X: y\r\n ",
];

pub(super) fn refused() -> Vec<Probe> {
    let line_ends = LINE_ENDS.iter().map(|bytes| bad("RFC 9112 §2.2", *bytes));
    let starts = STARTS.iter().map(|start| bad("RFC 9112 §3", begun(start)));
    let versions = VERSIONS.iter().map(|version| {
        let start = format!("POST /ingest/event HTTP/{version}\r\nHost: x");
        refused_with("RFC 9110 §2.5", &[400, 505], begun(&start))
    });
    let first = FIELDS.iter().map(|field| format!("POST /ingest/event HTTP/1.1\r\n{field}\r\nHost: x"));
    let later = FIELDS.iter().map(|field| format!("POST /ingest/event HTTP/1.1\r\nHost: x\r\n{field}"));
    let fields = first.chain(later).map(|start| bad("RFC 9112 §5", begun(&start)));
    let others = [
        // What another protocol begins with: HTTP/2 (RFC 9113 §3.4), and a handshake of TLS.
        refused_with("RFC 9110 §2.5", &[400, 505], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        bad("RFC 9112 §3", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n\r\n"),
        bad("RFC 9112 §2.2", [b"\r\n".repeat(50), begun("POST /ingest/event HTTP/1.1\r\nHost: x")].concat()),
    ];
    line_ends.chain(starts).chain(versions).chain(fields).chain(others).collect()
}
