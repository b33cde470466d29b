//! Transfer-Encoding: everything that isn't `chunked`, once, in HTTP/1.1.

use super::probe::{Probe, bad, post, refused as refused_with};

const CHUNKS: &str = "5\r\n[1,2]\r\n0\r\n\r\n";

/// `chunked` isn't the last coding, or it is unclear whether it is: 400 (RFC 9112 §6.3, point 4). Empty members of
/// the list could be ignored; only clients that smuggle requests send them.
const NOT_CHUNKED: &[&str] = &[
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: chunk",
    "Transfer-Encoding: chunked-",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: 'chunked'",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: chunked foo",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding:",
    "Transfer-Encoding: chun\u{212a}ed",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nX: y\r\ntransfer-encoding: gzip",
];

/// Names and values that some parser treats as `Transfer-Encoding: chunked` (RFC 9112 §5.1, §5.2; RFC 9110 §5.5).
const DISGUISED: &[&str] = &[
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding\u{b}: chunked",
    "Transfer-Encoding\0: chunked",
    "Transfer-Encoding\u{a0}: chunked",
    "Transfer Encoding: chunked",
    "Transfer-Encoding:\u{b}chunked",
    "Transfer-Encoding:\u{c}chunked",
    "Transfer-Encoding: chunked\u{b}",
    "Transfer-Encoding: chunked\0",
    "Transfer-Encoding: \u{8}chunked",
    "Transfer-Encoding: chunked\r",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding:\r\n\tchunked",
    "Transfer-Encoding: chunked\r\n , identity",
    "X: y\r\n Transfer-Encoding: chunked",
    "X: y\r\n\tTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "\rTransfer-Encoding: chunked",
    "\u{feff}Transfer-Encoding: chunked",
    ":Transfer-Encoding: chunked",
];

pub(super) fn refused() -> Vec<Probe> {
    let rows = |section, fields: &'static [&str]| fields.iter().map(move |fields| bad(section, post(fields, CHUNKS)));
    // Codings that are valid but not supported: 501 would be correct too (§6.1).
    let unknown = ["gzip, chunked", "identity, chunked", "deflate,chunked"].into_iter().map(|codings| {
        let bytes = post(&format!("Transfer-Encoding: {codings}"), CHUNKS);
        refused_with("RFC 9112 §6.1", &[400, 501], bytes)
    });
    let old = ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 15"].map(|fields| {
        let head = format!("POST /ingest/event HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n{fields}\r\n\r\n");
        bad("RFC 9112 §6.1", head + CHUNKS)
    });
    rows("RFC 9112 §6.3", NOT_CHUNKED).chain(rows("RFC 9112 §5", DISGUISED)).chain(unknown).chain(old).collect()
}
