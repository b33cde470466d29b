//! Encoded bodies: the decoded bytes count, and are limited.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use gateway::{ErrorCode, GatewayOptions};
use limits::{BATCH_BYTES_MAX, DECODER_BYTES, EVENT_BYTES_MAX};

use crate::fixture::{Answer, Fixture, open_types};

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(bytes.as_ref().len()));
    zstd_safe::compress(&mut encoded, bytes.as_ref(), 3).unwrap();
    encoded
}

type Encode = fn(&[u8]) -> Vec<u8>;
const CODINGS: [(&str, Encode); 2] = [("gzip", |bytes| gzip(bytes)), ("zstd", |bytes| zstd(bytes))];
/// Codings without members: nothing may follow their end. Some senders mean the data without the header of the zlib format.
const SINGLE: [(&str, Encode); 2] = [("deflate", |bytes| zlib(bytes)), ("Deflate", |bytes| deflate(bytes))];

fn header(coding: &str) -> String {
    format!("Content-Encoding: {coding}\r\n")
}

fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

/// A request with its body in chunks of so many bytes.
fn chunked(path: &str, coding: &str, body: &[u8], chunk_bytes: usize) -> Vec<u8> {
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {coding}\r\n\r\n");
    let chunk = |chunk: &[u8]| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    let chunks: Vec<u8> = body.chunks(chunk_bytes).flat_map(chunk).collect();
    [head.as_bytes(), &chunks, b"0\r\n\r\n"].concat()
}

fn with_length(path: &str, coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nContent-Encoding: {coding}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn encoded_bodies_are_stored_decoded() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    for (coding, encode) in CODINGS.into_iter().chain(SINGLE) {
        client.post("/ingest/event", &header(coding), &encode(br#" {"a":1}"#));
        assert_eq!(client.answer().status, 200, "{coding}");
        client.send(chunked("/ingest/event", coding, &encode(b"2"), 3));
        assert_eq!(client.answer().status, 200, "{coding}");
        client.post("/ingest/batch", &header(coding), &encode(b"3\nx\n4\n"));
        let answer = client.answer();
        assert_eq!((answer.status, &answer.json()["refused"][0]["line"]), (207, &2.into()), "{coding}");
        client.send(chunked("/ingest/batch", coding, &encode(b"[5,6]"), 1));
        assert_eq!(client.answer().status, 200, "{coding}");
    }
    assert_eq!(fixture.payloads(), [r#"{"a":1}"#, "2", "3", "4", "5", "6"].repeat(4));
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

#[test]
fn single_known_coding_is_accepted() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    for coding in ["GZIP", "x-gzip", " gzip "] {
        client.post("/ingest/event", &header(coding), &gzip("1"));
        assert_eq!(client.answer().status, 200, "{coding}");
    }
    client.post("/ingest/event", &header("Identity"), b"1");
    assert_eq!(client.answer().status, 200);
    for headers in [
        header("gzip, gzip"),
        header("gzip,zstd"),
        header("identity, gzip"),
        header("gzip,"),
        header("x-deflate"),
        header("br"),
        header("x-zstd"),
        header("gzip") + &header("gzip"),
        header("identity") + &header("identity"),
        header("gzip") + &header("zstd") + &header("gzip"),
    ] {
        for path in ["/ingest/event", "/ingest/batch"] {
            client.post(path, &headers, &gzip(gzip("1")));
            assert_eq!(refused(&client.answer()), (415, "content_encoding".to_owned()), "{headers}");
        }
    }
    assert_eq!(fixture.payloads(), ["1"; 4]);
}

#[test]
fn pipelined_encoded_requests_survive_any_split() {
    let whole = [
        with_length("/ingest/event", "gzip", &gzip("11")),
        chunked("/ingest/event", "zstd", &zstd("22"), 7),
        with_length("/ingest/event", "zstd", &[zstd("3"), zstd("3")].concat()),
        with_length("/ingest/event", "gzip", b"1"),
        chunked("/ingest/batch", "gzip", &[gzip("44\n"), gzip("55")].concat(), 9),
    ];
    let text = whole.concat();
    let fixture = Fixture::open();
    for cut in 0..text.len() {
        let mut client = fixture.connect();
        client.send(&text[..cut]);
        let ends = whole.iter().scan(0, |end, request| {
            *end += request.len();
            Some(*end)
        });
        // Complete requests are answered before the rest arrives, so the rest is sent separately.
        let early = ends.filter(|end| *end <= cut).count();
        let mut statuses: Vec<_> = (0..early).map(|_| client.answer().status).collect();
        client.send(&text[cut..]);
        statuses.extend((early..whole.len()).map(|_| client.answer().status));
        assert_eq!(statuses, [200, 200, 200, 400, 200], "{cut}");
        assert_eq!(fixture.counters().bytes_in_flight(), 0, "{cut}");
    }
    assert_eq!(fixture.payloads(), ["11", "22", "33", "44", "55"].repeat(text.len()));
}

#[test]
fn undecodable_body_is_rejected_and_connection_continues() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let window_16_mib = [&[0x28, 0xB5, 0x2F, 0xFD, 0, (24 - 10) << 3][..], &[1 | 1 << 3, 0, 0], b"1"].concat();
    let mut bodies = vec![("zstd", window_16_mib), ("zstd", gzip("1")), ("gzip", zstd("1")), ("gzip", b"1".to_vec())];
    for (coding, encode) in CODINGS {
        let encoded = encode(b"1");
        bodies.extend((0..encoded.len()).map(|end| (coding, encoded[..end].to_vec())));
        bodies.extend([&b"\0"[..], b"\n", b"1", &encoded[..3]].map(|rest| (coding, [&encoded, rest].concat())));
    }
    for (coding, body) in &bodies {
        for path in ["/ingest/event", "/ingest/batch"] {
            client.post(path, &header(coding), body);
            assert_eq!(refused(&client.answer()), (400, "encoding".to_owned()), "{path} {coding} {body:?}");
            client.send(chunked(path, coding, body, 5));
            let answer = client.answer();
            assert_eq!(refused(&answer), (400, "encoding".to_owned()), "{path} {coding} {body:?}");
            if answer.header("connection") == Some("close") {
                // There may be endless chunks after the fault.
                client = fixture.connect();
            }
        }
    }
    assert_eq!(fixture.counters().refusals(ErrorCode::Encoding), 4 * bodies.len() as u64);
    assert!(fixture.stored().is_empty());
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

#[test]
fn bytes_after_deflated_data_are_rejected() {
    let fixture = Fixture::open();
    for (coding, encode) in SINGLE {
        let answer = fixture.post("/ingest/event", &header(coding), [encode(b"1"), encode(b"2")].concat());
        assert_eq!(refused(&answer), (400, "encoding".into()));
        let cut = encode(b"[1,2,3,4,5]");
        let answer = fixture.post("/ingest/event", &header(coding), &cut[..cut.len() - 2]);
        assert_eq!(refused(&answer), (400, "encoding".into()));
    }
    assert!(fixture.stored().is_empty());
}

#[test]
fn decoded_size_is_limited() {
    let fixture = Fixture::open();
    for (coding, encode) in CODINGS {
        let fits = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX - 2));
        assert_eq!(fixture.post("/ingest/event", &header(coding), encode(fits.as_bytes())).status, 200);
        let answer = fixture.post("/ingest/event", &header(coding), encode((fits + " ").as_bytes()));
        assert_eq!(refused(&answer), (413, "too_large".to_owned()));

        let fits = "\n".repeat(BATCH_BYTES_MAX - 1) + "1";
        let answer = fixture.post("/ingest/batch", &header(coding), encode(fits.as_bytes()));
        assert_eq!((answer.status, &answer.json()["accepted"]), (200, &1.into()));
        let answer = fixture.post("/ingest/batch", &header(coding), encode((fits + "\n").as_bytes()));
        assert_eq!(refused(&answer), (413, "too_large".to_owned()));
    }
    assert_eq!(fixture.stored().len(), 4);
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

/// So many parts that decode to nothing.
fn nothing(coding: &str, bytes: usize) -> Vec<u8> {
    let one = if coding == "gzip" { gzip("") } else { [&[0x50, 0x2A, 0x4D, 0x18, 0, 1, 0, 0][..], &[7; 256]].concat() };
    one.repeat(bytes / one.len() + 1)
}

#[test]
fn encoded_size_is_limited() {
    let fixture = Fixture::open();
    for (coding, encode) in CODINGS {
        let event = [nothing(coding, 60_000), encode(b"1")].concat();
        assert_eq!(fixture.post("/ingest/event", &header(coding), &event).status, 200);
        let event = [nothing(coding, EVENT_BYTES_MAX), encode(b"1")].concat();
        let answer = fixture.post("/ingest/event", &header(coding), &event);
        assert_eq!(refused(&answer), (413, "too_large".to_owned()));
        let mut client = fixture.connect();
        // It may be rejected before all of it is sent.
        let _ = client.try_send(chunked("/ingest/event", coding, &event, 10_000));
        assert_eq!(refused(&client.answer()), (413, "too_large".to_owned()));
    }
    assert_eq!(fixture.payloads(), ["1"; 2]);
}

/// `bytes` spaces in as few bytes as the coding can.
fn bomb(coding: &str, bytes: usize) -> Vec<u8> {
    if coding == "gzip" {
        return gzip(vec![b' '; 8 << 20]).repeat(bytes >> 23);
    }
    // Blocks of 128 KiB of one byte, four bytes each.
    let header = (128_u32 << 10) << 3 | 1 << 1;
    let block = [&header.to_le_bytes()[..3], b" "].concat();
    let last = [1, 0, 0];
    [&[0x28, 0xB5, 0x2F, 0xFD, 0, (17 - 10) << 3][..], &block.repeat(bytes >> 17), &last].concat()
}

#[test]
fn compression_bomb_stops_at_the_limit() {
    let fixture = Fixture::open();
    for (coding, bytes) in [("gzip", 64 << 20), ("zstd", 64 << 20), ("gzip", 1 << 30), ("zstd", 8 << 30)] {
        let body = bomb(coding, bytes);
        assert!(bytes / body.len() >= 1000, "{coding}: {}", body.len());
        for path in ["/ingest/event", "/ingest/batch"] {
            let answer = fixture.post(path, &header(coding), &body);
            assert_eq!(refused(&answer), (413, "too_large".to_owned()), "{path} {coding} {bytes}");
        }
    }
    // Two codings would make it a million to one: only one is accepted.
    let answer = fixture.post("/ingest/batch", &header("gzip, zstd"), zstd(bomb("gzip", 64 << 20)));
    assert_eq!(answer.status, 415);
    assert!(fixture.stored().is_empty());
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

#[test]
fn decoded_bytes_and_decoder_count_as_in_flight() {
    let fixture = Fixture::open();
    for (coding, encode) in CODINGS {
        let body = [encode(&[b' '; 100_000]), encode(b"1\n")].concat();
        let request = with_length("/ingest/batch", coding, &body);
        let (most, rest) = request.split_at(request.len() - 1);
        let (mut client, mut leaver) = (fixture.connect(), fixture.connect());
        client.send(most);
        let each = DECODER_BYTES + 100_000;
        fixture.wait("it is decoded", |counters| counters.bytes_in_flight() >= each);
        leaver.send(most);
        fixture.wait("both are decoded", |counters| counters.bytes_in_flight() >= 2 * each);
        client.send(rest);
        assert_eq!(client.answer().status, 200);
        assert!(fixture.counters().bytes_in_flight() < 2 * each);
        drop(leaver);
        fixture.wait("it is given back", |counters| counters.bytes_in_flight() == 0);
    }
}

#[test]
fn decoded_bytes_above_the_limit_are_shed() {
    let options = GatewayOptions { in_flight_bytes_max: DECODER_BYTES + 100_000, ..GatewayOptions::default() };
    let fixture = Fixture::with(open_types(), options);
    for (coding, encode) in CODINGS {
        for path in ["/ingest/event", "/ingest/batch"] {
            let answer = fixture.post(path, &header(coding), encode((" ".repeat(200_000) + "1").as_bytes()));
            assert_eq!(refused(&answer), (503, "overload".to_owned()), "{path} {coding}");
            let answer = fixture.post(path, &header(coding), encode((" ".repeat(20_000) + "1").as_bytes()));
            assert_eq!(answer.status, 200);
        }
    }
    assert_eq!(fixture.counters().bytes_in_flight(), 0);
}

#[test]
fn encoded_body_works_with_expect_continue() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let body = gzip("1");
    client.send(format!(
        "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nContent-Encoding: gzip\r\n\
         Expect: 100-continue\r\n\r\n",
        body.len()
    ));
    assert_eq!(client.answer().status, 100);
    client.send(body);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn rest_of_rejected_body_is_not_decoded() {
    let fixture = Fixture::open();
    let mut client = fixture.connect();
    let too_much = gzip(vec![b' '; 2 * EVENT_BYTES_MAX]);
    let request = with_length("/ingest/event", "gzip", &[&too_much[..], b"no gzip"].concat());
    let (most, rest) = request.split_at(request.len() - 5);
    client.send(most);
    fixture.wait("it is refused", |counters| counters.refusals(ErrorCode::TooLarge) == 1);
    client.send(rest);
    let answer = client.answer();
    assert_eq!(refused(&answer), (413, "too_large".to_owned()));
    assert_eq!(answer.header("connection"), None);
}
