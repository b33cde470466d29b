//! Chunked bodies (RFC 9112 §7.1).

use super::probe::{Probe, bad, chunked, good};

/// Bodies whose sizes, data or ends violate the grammar.
const CHUNKS: &[&str] = &[
    "\r\n[1,2]\r\n0\r\n\r\n",
    "+5\r\n[1,2]\r\n0\r\n\r\n",
    "-5\r\n[1,2]\r\n0\r\n\r\n",
    "0x5\r\n[1,2]\r\n0\r\n\r\n",
    "x5\r\n[1,2]\r\n0\r\n\r\n",
    "5h\r\n[1,2]\r\n0\r\n\r\n",
    "g\r\n[1,2]\r\n0\r\n\r\n",
    "\u{ff15}\r\n[1,2]\r\n0\r\n\r\n",
    "5_\r\n[1,2]\r\n0\r\n\r\n",
    "5.0\r\n[1,2]\r\n0\r\n\r\n",
    "5,\r\n[1,2]\r\n0\r\n\r\n",
    " 5\r\n[1,2]\r\n0\r\n\r\n",
    "\t5\r\n[1,2]\r\n0\r\n\r\n",
    "5 \r\n[1,2]\r\n0\r\n\r\n",
    "5\t\r\n[1,2]\r\n0\r\n\r\n",
    "5 5\r\n[1,2]\r\n0\r\n\r\n",
    "5\0\r\n[1,2]\r\n0\r\n\r\n",
    "5\n[1,2]\r\n0\r\n\r\n",
    "5\r[1,2]\r\n0\r\n\r\n",
    "5\r\r\n[1,2]\r\n0\r\n\r\n",
    "5\n\r[1,2]\r\n0\r\n\r\n",
    "5\r\n[1,2]0\r\n\r\n",
    "5\r\n[1,2]\n0\r\n\r\n",
    "5\r\n[1,2]\r0\r\n\r\n",
    "5\r\n[1,2]\r\r\n0\r\n\r\n",
    "5\r\n[1,2]\r\n\r\n0\r\n\r\n",
    "5\r\n[1,2] \r\n0\r\n\r\n",
    "5\r\n[1,2]  0\r\n\r\n",
    "4\r\n[1,2]\r\n0\r\n\r\n",
    "6\r\n[1,2]\r\n0\r\n\r\n",
    "5\r\n[1,2]\r\n0\n\r\n",
    "5\r\n[1,2]\r\n0\r\n\n",
    "5\r\n[1,2]\r\n0\r\n\r\r\n",
    "5\r\n[1,2]\r\n0\n\n",
    "5\r\n[1,2]\r\n-0\r\n\r\n",
    "5\r\n[1,2]\r\n0x0\r\n\r\n",
    "5\r\n[1,2]\r\n0 \r\n\r\n",
    "5\r\n[1,2]\r\n0\r\n",
];

/// Sizes that are 5, or -5, to a parser that truncates them to 64 or 32 bits.
const OVERFLOWS: &[&str] =
    &["10000000000000005", "100000000000000000000000000000005", "fffffffffffffffb", "8000000000000005", "fffffffb"];

/// Invalid extensions (RFC 9112 §7.1.1), after the size.
const EXTENSIONS: &[&str] = &[
    ";",
    ";;",
    ";=b",
    ";a=",
    ";a;",
    ";a=b;",
    ";a b",
    ";a=b c",
    ";a=b=c",
    ";a=\"b",
    ";a=\"b\"c",
    ";a=b\"c\"",
    ";a=\"b\\",
    ";a\n",
    ";a\r",
    ";a\nb",
    ";a\rb",
    ";a=\"\n\"",
    ";a=\"\r\n\"",
    ";a=\"\\\r\n\"",
    ";a\0",
    ";a=\"\0\"",
    ";a=\u{7f}",
    " a",
];

/// Invalid trailers (RFC 9112 §7.1.2, §5).
const TRAILERS: &[&str] = &[
    "X",
    " X: y",
    "\tX: y",
    "X : y",
    ": y",
    "X y: z",
    "X: \0",
    "X: \u{7f}",
    "X: y\r\n z",
    "X: y\nZ: z",
    "X: y\rz",
    "X\0: y",
    "\u{e9}: y",
    "POST /ingest/event HTTP/1.1\r\nHost: x",
];

pub(super) fn refused() -> Vec<Probe> {
    let chunks = CHUNKS.iter().map(|body| bad("RFC 9112 §7.1", chunked(body)));
    let size = |size: &&str| chunked(&format!("{size}\r\n[1,2]\r\n0\r\n\r\n"));
    let overflows = OVERFLOWS[..4].iter().map(|text| bad("RFC 9112 §7.1", size(text)));
    let first = EXTENSIONS.iter().map(|text| chunked(&format!("5{text}\r\n[1,2]\r\n0\r\n\r\n")));
    let last = EXTENSIONS.iter().map(|text| chunked(&format!("5\r\n[1,2]\r\n0{text}\r\n\r\n")));
    let extensions = first.chain(last).map(|bytes| bad("RFC 9112 §7.1.1", bytes));
    let trailer = |text: &&str| chunked(&format!("5\r\n[1,2]\r\n0\r\n{text}\r\n\r\n"));
    let trailers = TRAILERS.iter().map(|text| bad("RFC 9112 §7.1.2", trailer(text)));
    chunks.chain(overflows).chain(extensions).chain(trailers).collect()
}

/// Bodies that look odd and are valid. Trailers, forbidden ones too (RFC 9110 §6.5.1), are ignored.
const ODD: &[&str] = &[
    "2\r\n[1\r\n3\r\n,2]\r\n0\r\n\r\n",
    "00000005\r\n[1,2]\r\n000\r\n\r\n",
    "A\r\n[1,2,3,4] \r\n0\r\n\r\n",
    "a\r\n[1,2,3,4] \r\n0\r\n\r\n",
    "5;a\r\n[1,2]\r\n0;b\r\n\r\n",
    "5;a=b;c=d\r\n[1,2]\r\n0\r\n\r\n",
    "5;a=\"\"\r\n[1,2]\r\n0\r\n\r\n",
    "5;a=\"b c;d=\\\"e\\\\\";f\r\n[1,2]\r\n0\r\n\r\n",
    "5 ;a\r\n[1,2]\r\n0\r\n\r\n",
    "5\t; a \t= \"b\" ; c = d\r\n[1,2]\r\n0 ; e\r\n\r\n",
    "5\r\n[1,2]\r\n0\r\nX: y\r\nZ:\r\n\r\n",
    "5\r\n[1,2]\r\n0\r\nContent-Length: 100\r\n\r\n",
    "5\r\n[1,2]\r\n0\r\nTransfer-Encoding: chunked\r\nHost: y\r\n\r\n",
    "5\r\n[1,2]\r\n0\r\nContent-Encoding: gzip\r\nIdempotency-Key: a\r\nConnection: close\r\n\r\n",
];

pub(super) fn answered() -> Vec<Probe> {
    ODD.iter().map(|body| good("RFC 9112 §7.1", chunked(body))).collect()
}
