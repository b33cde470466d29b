//! 64 frames that no gateway sends, sent to a writer with a gateway's token. Each is rejected with the reason, and changes nothing in the store.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use event::{EventId, Lane, Origin};
use limits::{JSON_DEPTH_MAX, SOURCE_BYTES_MAX, TYPE_NAME_BYTES_MAX};
use sink::{Batch, Record, SinkError, Write, WriteOutcome};
use writer_protocol::{frame, version, wire};
use xxhash_rust::xxh3::xxh3_64;

use crate::conformance::SinkHarness;
use crate::through_writer::Running;

/// How many there are.
const FRAMES: usize = 64;
/// Bytes of the checksum at the end of a frame.
const CHECKSUM_BYTES: usize = 8;

/// The invalid second record of a batch. The first one is valid.
#[derive(Clone)]
struct Odd {
    type_name: String,
    source: String,
    payload: Vec<u8>,
    times: (i64, Option<i64>),
    write: Write,
}

impl Default for Odd {
    fn default() -> Self {
        let (type_name, payload) = ("hits".to_owned(), br#"{"f":"x","n":1}"#.to_vec());
        Self { type_name, source: String::new(), payload, times: (0, None), write: Write::Insert }
    }
}

/// Types that could become another key, subject, path, index or line.
fn types() -> Vec<String> {
    let texts = [
        "",
        "Hits",
        "a b",
        "a/b",
        "../x",
        "a..b",
        ".",
        "..",
        "a.",
        "-a",
        "_a",
        "a:b",
        "forebay:{type}:cursors",
        "a\nb",
        "a\r\nPUB forebay.cursors 0\r\n\r\n",
        "a\0",
        "../../admin/delete?all=1&x=",
        "a*",
        "a.>",
        "\u{e9}",
        "a{b}",
        "a%2fb",
        "x\",\"_id\":\"1\"}}\n{\"a\":1}\n{\"delete\":{\"_index\":\"other\",\"_id\":\"secret\"}}\n{\"create\":{\"_index\":\"y",
    ];
    texts.into_iter().map(str::to_owned).chain(["a".repeat(TYPE_NAME_BYTES_MAX + 1)]).collect()
}

fn sources() -> Vec<String> {
    let texts = ["a b", "-a", "\n", "\u{e9}", "a/b", "{", "\"", "a\0b", ".", "a:b", "a,b"];
    texts.into_iter().map(str::to_owned).chain(["a".repeat(SOURCE_BYTES_MAX + 1)]).collect()
}

fn payloads() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 15] = [
        b"",
        b" ",
        b"x",
        b"{",
        b"{\"a\":}",
        b"{}{}",
        b"\xff",
        b"\"\\ud800\"",
        b"nul",
        b"01",
        b"{'a':1}",
        b"[1,]",
        b"\xef\xbb\xbf{}",
        b"{}\n{\"delete\":{\"_index\":\"other\",\"_id\":\"1\"}}",
        b"NaN",
    ];
    let deep = [vec![b'['; JSON_DEPTH_MAX + 1], vec![b']'; JSON_DEPTH_MAX + 1]].concat();
    texts.into_iter().map(<[u8]>::to_vec).chain([deep]).collect()
}

/// The records that no gateway accepts.
fn records() -> Vec<Odd> {
    let times = [(-1, None), (i64::MAX, None), (0, Some(i64::MIN)), (0, Some(i64::MAX))];
    let of_types = types().into_iter().map(|type_name| Odd { type_name, ..Odd::default() });
    let of_sources = sources().into_iter().map(|source| Odd { source, ..Odd::default() });
    let of_payloads = payloads().into_iter().map(|payload| Odd { payload, ..Odd::default() });
    let of_times = times.into_iter().map(|times| Odd { times, ..Odd::default() });
    let of_revisions = [Odd { write: Write::Upsert(u64::MAX), ..Odd::default() }];
    of_types.chain(of_sources).chain(of_payloads).chain(of_times).chain(of_revisions).collect()
}

fn lane(origin: u8) -> Lane {
    Lane { origin: Origin([origin; 16]), shard: 0, sink: "store".into() }
}

fn push(batch: &mut Batch, sequence: u64, odd: &Odd) {
    let block = Bytes::from([odd.type_name.as_bytes(), odd.source.as_bytes(), &odd.payload].concat());
    let (type_name, rest) = block.split_at(odd.type_name.len());
    let (source, payload) = rest.split_at(odd.source.len());
    let record = Record {
        sequence,
        id: EventId([0x70 + u8::try_from(sequence).unwrap(); 16]),
        type_name: std::str::from_utf8(type_name).unwrap(),
        source: std::str::from_utf8(source).unwrap(),
        received_at: odd.times.0,
        event_time: odd.times.1,
        write: odd.write,
        payload,
    };
    batch.push(&block, &record);
}

/// A batch of a valid record and this one.
fn batch(odd: &Odd) -> Batch {
    let mut batch = Batch::new(lane(0xaa), 1);
    push(&mut batch, 1, &Odd::default());
    push(&mut batch, 2, odd);
    batch
}

/// Frames with valid records and invalid bytes.
fn spoilt_frames() -> Vec<Vec<u8>> {
    let good = frame::encode(&batch(&Odd::default()));
    let content = &good[..good.len() - CHECKSUM_BYTES];
    let sealed = |mut content: Vec<u8>| {
        let checksum = xxh3_64(&content);
        content.extend(checksum.to_le_bytes());
        content
    };
    let with = |at: usize, byte: u8| {
        let mut content = content.to_vec();
        content[at] = byte;
        sealed(content)
    };
    let names = content.windows(4).position(|window| window == b"hits").unwrap();
    const HEAD: usize = 8;
    const FLAGS: usize = HEAD + 8 + 16 + 8;
    let mut wrong_checksum = good.to_vec();
    *wrong_checksum.last_mut().unwrap() ^= 1;
    vec![
        with(0, b'X'),
        // One record more, and one less, than there are.
        with(4, 3),
        with(4, 1),
        with(names, 0xff),
        with(FLAGS, 0x80),
        // The first record is after the second.
        with(HEAD, 9),
        wrong_checksum,
    ]
}

fn frames() -> Vec<Vec<u8>> {
    records().iter().map(|odd| frame::encode(&batch(odd)).to_vec()).chain(spoilt_frames()).collect()
}

/// Posts a frame, and returns the writer's answer.
fn post(writer: SocketAddr, frame: &[u8]) -> String {
    let (lane, content_type) = (wire::lane_text(&lane(0xaa)), wire::CONTENT_TYPE);
    let head = format!(
        "POST {}/store HTTP/1.1\r\nHost: {writer}\r\nConnection: close\r\nForebay-Protocol: {}\r\n\
         Forebay-Lane: {lane}\r\nForebay-Positions: 1-2\r\n\
         Forebay-Min-Position: 0\r\nForebay-Resent-Through: 0\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        wire::PATH,
        version::OWN,
        frame.len()
    );
    let mut stream = TcpStream::connect(writer).unwrap();
    stream.write_all(&[head.as_bytes(), frame].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends all odd frames to a writer with this store, and then their records to the store itself, which must not trust a type either.
///
/// # Panics
/// A frame isn't rejected, or something of it is in the store, or another origin's cursor has moved.
pub async fn are_rejected<S: SinkHarness>() {
    let subject = S::fresh().await;
    let sink = subject.sink();
    sink.connect().await.unwrap();
    let mut other = Batch::new(lane(0xbb), 1);
    push(&mut other, 1, &Odd::default());
    sink.write(&other).await.unwrap();
    let before = (subject.rows().await, sink.held(&lane(0xbb)).await, sink.held(&lane(0xaa)).await);
    let writer = Running::start("store", subject.sink());
    let frames = frames();
    assert_eq!(frames.len(), FRAMES);
    for (number, frame) in frames.iter().enumerate() {
        let answer = post(writer.address, frame);
        let has_reason = answer.contains("\"detail\":\"");
        assert!(answer.starts_with("HTTP/1.1 400 ") && has_reason, "frame {number}: {answer}");
    }
    let after = (subject.rows().await, sink.held(&lane(0xbb)).await, sink.held(&lane(0xaa)).await);
    assert_eq!(after, before, "a rejected frame changes nothing");
    for type_name in types() {
        let odd = Odd { type_name: type_name.clone(), ..Odd::default() };
        let written: Result<WriteOutcome, SinkError> = sink.write(&batch(&odd)).await;
        let is_known = matches!(written, Ok(WriteOutcome::Committed | WriteOutcome::Rejected { .. }));
        assert!(is_known, "{type_name:?}: {written:?}");
    }
    assert_eq!(sink.held(&lane(0xbb)).await, before.1, "another origin's cursor");
}
