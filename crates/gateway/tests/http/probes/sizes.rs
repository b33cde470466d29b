//! Heads and chunked bodies at their limits, and one beyond.

use limits::HEADER_BYTES_MAX;

use super::probe::{Probe, bad, chunked, good, post, refused as refused_with};

/// Header lines that a head may have, and bytes of a chunk's extension, as docs/reference/http-ingest.md has them.
const LINES_MAX: usize = 100;
const EXTENSION_BYTES_MAX: usize = 256;

fn long_value(head_bytes: usize) -> Vec<u8> {
    let body = "[1,2]";
    let without = post("Content-Length: 5\r\nX: ", body).len() - body.len();
    post(&format!("Content-Length: 5\r\nX: {}", "x".repeat(head_bytes - without)), body)
}

/// Host and Content-Length are lines too.
fn many_lines(lines: usize) -> Vec<u8> {
    post(&("X: y\r\n".repeat(lines - 2) + "Content-Length: 5"), "[1,2]")
}

fn long_extension(bytes: usize) -> Vec<u8> {
    chunked(&format!("5;{}\r\n[1,2]\r\n0\r\n\r\n", "x".repeat(bytes)))
}

fn many_extensions(chunks: usize) -> Vec<u8> {
    let spaces = format!("1;{}\r\n \r\n", "x".repeat(100)).repeat(chunks);
    chunked(&format!("{spaces}5\r\n[1,2]\r\n0\r\n\r\n"))
}

fn long_start(start: &str, end: &str) -> String {
    format!("{start}{}{end}\r\nHost: x\r\n\r\n", "x".repeat(HEADER_BYTES_MAX))
}

pub(super) fn refused() -> Vec<Probe> {
    let long_trailer = chunked(&format!("5\r\n[1,2]\r\n0\r\nX: {}\r\n\r\n", "x".repeat(HEADER_BYTES_MAX)));
    let many_trailers = chunked(&format!("5\r\n[1,2]\r\n0\r\n{}\r\n", "X: y\r\n".repeat(HEADER_BYTES_MAX / 6)));
    vec![
        refused_with("RFC 6585 §5", &[431], long_value(HEADER_BYTES_MAX + 1)),
        refused_with("RFC 6585 §5", &[431], long_value(3 * HEADER_BYTES_MAX)),
        refused_with("RFC 6585 §5", &[431], post(&("x".repeat(HEADER_BYTES_MAX) + ": y"), "")),
        refused_with("RFC 6585 §5", &[431], many_lines(LINES_MAX + 1)),
        refused_with("RFC 9112 §3", &[414], long_start("POST /ingest/event?", " HTTP/1.1")),
        refused_with("RFC 9112 §3", &[414], long_start("GET /", " HTTP/1.1")),
        refused_with("RFC 9112 §3", &[400, 414, 501], long_start("POST", " / HTTP/1.1")),
        refused_with("RFC 9112 §3", &[400, 414], long_start("POST / ", "")),
        bad("RFC 9112 §7.1.1", long_extension(EXTENSION_BYTES_MAX + 1)),
        bad("RFC 9112 §7.1.1", long_extension(100_000)),
        bad("RFC 9112 §7.1.1", many_extensions(1000)),
        bad("RFC 9112 §7.1", chunked(&format!("{}5\r\n[1,2]\r\n0\r\n\r\n", "0".repeat(1000)))),
        refused_with("RFC 9112 §7.1.2", &[400, 431], long_trailer),
        refused_with("RFC 9112 §7.1.2", &[400, 431], many_trailers),
    ]
}

pub(super) fn answered() -> Vec<Probe> {
    vec![
        good("RFC 9110 §5.4", long_value(HEADER_BYTES_MAX)),
        good("RFC 9110 §5.4", many_lines(LINES_MAX)),
        good("RFC 9112 §7.1.1", long_extension(200)),
        good("RFC 9112 §7.1.1", many_extensions(100)),
    ]
}
