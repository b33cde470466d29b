//! Content-Length: several of them, one with a Transfer-Encoding, and invalid numbers.

use super::probe::{Probe, bad, post, refused as refused_with};

const BODY: &str = "[1,2]";
const CHUNKS: &str = "5\r\n[1,2]\r\n0\r\n\r\n";

/// Two lengths, or a length and chunks. RFC 9112 §6.3 lets a server accept some of them, but then a proxy before it may have used the
/// other length.
const TWICE: &[(&str, &str)] = &[
    ("Content-Length: 5\r\nTransfer-Encoding: chunked", CHUNKS),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5", CHUNKS),
    ("Content-Length: 0\r\nTransfer-Encoding: chunked", CHUNKS),
    ("content-length: 15\r\nX: y\r\ntransfer-encoding: CHUNKED", CHUNKS),
    ("Content-Length: 5\r\nTransfer-Encoding: identity", BODY),
    ("Content-Length: 5\r\nTransfer-Encoding:", BODY),
    ("Content-Length: 5\r\nContent-Length: 5", BODY),
    ("Content-Length: 5\r\nContent-Length: 6", BODY),
    ("Content-Length: 6\r\nX: y\r\ncontent-length: 5", BODY),
    ("Content-Length: 5\r\nContent-Length: 0", BODY),
    ("Content-Length: 5\r\nContent-Length:", BODY),
    ("Content-Length: 5, 5", BODY),
    ("Content-Length: 5, 6", BODY),
    ("Content-Length: 5,", BODY),
    ("Content-Length: ,5", BODY),
    ("Content-Length: 5;5", BODY),
];

/// What is not `1*DIGIT` (RFC 9110 §8.6), or would be if it were cut to 64 bits.
const NO_NUMBERS: &[&str] = &[
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: -0",
    "Content-Length: 0x5",
    "Content-Length: 0b101",
    "Content-Length: 5.0",
    "Content-Length: 5e0",
    "Content-Length: 5_",
    "Content-Length: 5 5",
    "Content-Length: 5 bytes",
    "Content-Length: \"5\"",
    "Content-Length: five",
    "Content-Length: \u{665}",
    "Content-Length: \u{ff15}",
    "Content-Length:",
    "Content-Length:  \t",
    "Content-Length: 5\0",
    "Content-Length: \u{b}5",
    "Content-Length: \u{c}5",
    "Content-Length: 5\u{b}",
    "Content-Length: 5\u{a0}",
    "Content-Length: 5\r",
    "Content-Length:\r 5",
    "Content-Length:\r\n 5",
    "Content-Length: 5\r\n 0",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Content-Length\0: 5",
    "Content-\u{ad}Length: 5",
];

/// Numbers beyond 64 bits, which are 5 to a parser that lets them overflow.
const OVERFLOWS: &[&str] = &["18446744073709551621", "340282366920938463463374607431768211461"];
/// Numbers beyond 32 bits, or negative ones to a parser with signed numbers.
const LARGE: &[&str] = &["4294967301", "2147483653", "9223372036854775813", "18446744073709551611"];

pub(super) fn refused() -> Vec<Probe> {
    let twice = TWICE.iter().map(|(fields, body)| bad("RFC 9112 §6.3", post(fields, body)));
    let no_numbers = NO_NUMBERS.iter().map(|field| bad("RFC 9110 §8.6", post(field, BODY)));
    let length = |length: &&str| post(&format!("Content-Length: {length}"), BODY);
    let overflows = OVERFLOWS.iter().map(|text| refused_with("RFC 9110 §8.6", &[400, 413], length(text)));
    let large = LARGE.iter().map(|text| refused_with("RFC 9110 §8.6", &[400, 413], length(text)));
    twice.chain(no_numbers).chain(overflows).chain(large).collect()
}
