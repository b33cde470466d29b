//! Bodies that are built to be expensive: each is answered as docs/reference/http-ingest.md says, stays within its memory limit, and harms no other
//! client.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Folder, HANGS, Server};

const MIB: usize = 1 << 20;
/// By so much may the process grow for a request.
const GROWTH_BYTES_MAX: usize = 16 * MIB;

struct Bomb {
    name: &'static str,
    path: &'static str,
    fields: &'static str,
    body: Vec<u8>,
    status: u16,
    /// The code in the answer.
    code: &'static str,
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A thousand to one, which is the most that gzip can.
fn gzip_bomb(byte: u8, bytes: usize) -> Vec<u8> {
    gzip(&vec![byte; 8 * MIB]).repeat(bytes / (8 * MIB))
}

/// Thirty thousand to one: blocks of 128 KiB of one byte, in four bytes each (RFC 8878 §3.1.1.2).
fn zstd_bomb(byte: u8, bytes: usize) -> Vec<u8> {
    let block_header = (128_u32 << 10) << 3 | 1 << 1;
    let block = [&block_header.to_le_bytes()[..3], &[byte]].concat();
    let frame_header = [0x28, 0xB5, 0x2F, 0xFD, 0, (17 - 10) << 3];
    [&frame_header[..], &block.repeat(bytes >> 17), &[1, 0, 0]].concat()
}

fn keys(count: usize) -> Vec<u8> {
    let members: Vec<_> = (0..count).map(|number| format!("\"{number:x}\":0")).collect();
    format!("{{{}}}", members.join(",")).into()
}

const GZIP: &str = "Content-Encoding: gzip\r\n";
const ZSTD: &str = "Content-Encoding: zstd\r\n";
const BOTH: &str = "Content-Encoding: zstd, gzip\r\n";
const ARRAY: &str = "Content-Type: application/json\r\n";
const LINES: &str = "Content-Type: application/x-ndjson\r\n";

fn bombs() -> Vec<Bomb> {
    let event = |name, fields, body, status, code| Bomb { name, path: "/ingest/event", fields, body, status, code };
    let batch = |name, fields, body, status, code| Bomb { name, path: "/ingest/batch", fields, body, status, code };
    let inner = gzip(&zstd_bomb(b' ', 8192 * MIB));
    let repeated_key = format!("{{{}\"\":0}}", "\"\":0,".repeat(200_000)).into_bytes();
    let exponent = [b"1e".to_vec(), vec![b'9'; 1_000_000]].concat();
    let escapes = format!("\"{}\"", "\\ud83d\\ude00".repeat(80_000)).into_bytes();
    let closed = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    let digits = [b"[".to_vec(), b"1,".repeat(16 * MIB - 2), b"1]".to_vec()].concat();
    let string = [b"[\"".to_vec(), vec![b'x'; 32 * MIB - 4], b"\"]".to_vec()].concat();
    vec![
        event("gzip, 1 GiB in 1 MiB", GZIP, gzip_bomb(b' ', 1000 * MIB), 413, "too_large"),
        event("zstd, 8 GiB in 256 KiB", ZSTD, zstd_bomb(b' ', 8192 * MIB), 413, "too_large"),
        event("zstd, brackets", ZSTD, zstd_bomb(b'[', 8192 * MIB), 413, "too_large"),
        event("zstd in gzip, a million to one", BOTH, inner.clone(), 415, "content_encoding"),
        event("zstd in gzip, as gzip", GZIP, inner, 400, "json"),
        event("brackets", "", vec![b'['; 1_000_000], 400, "json"),
        event("nested objects", "", b"{\"\":".repeat(200_000), 400, "json"),
        event("brackets, closed", "", closed(500_000), 400, "depth"),
        event("a million keys", "", keys(1_000_000), 413, "too_large"),
        event("as many keys as there is room for", "", keys(100_000), 200, ""),
        event("the same key again and again", "", repeated_key, 200, ""),
        event("a million digits", "", vec![b'1'; 1_000_000], 200, ""),
        event("an exponent of a million digits", "", exponent, 200, ""),
        event("escapes", "", escapes, 200, ""),
        batch("gzip, 1 GiB in 1 MiB, a batch", GZIP, gzip_bomb(b' ', 1000 * MIB), 413, "too_large"),
        batch("zstd, 8 GiB in 256 KiB, a batch", ZSTD, zstd_bomb(b'\n', 8192 * MIB), 413, "too_large"),
        batch("zstd, brackets, a batch", ZSTD, zstd_bomb(b'[', 8192 * MIB), 413, "too_large"),
        batch("both codings", BOTH, zstd_bomb(b' ', 64 * MIB), 415, "content_encoding"),
        batch("a million keys in one line", LINES, keys(1_000_000), 422, "too_large"),
        batch("lines of a digit", "", b"1\n".repeat(16 * MIB), 413, "too_many_records"),
        batch("lines of a digit, so named", LINES, b"1\n".repeat(16 * MIB), 413, "too_many_records"),
        batch("empty lines", "", vec![b'\n'; 32 * MIB], 200, "\"accepted\":0"),
        batch("32 MiB of brackets", "", vec![b'['; 32 * MIB], 400, "json"),
        batch("32 MiB of brackets, an array", ARRAY, vec![b'['; 32 * MIB], 400, "json"),
        batch("32 MiB of brackets, lines", LINES, vec![b'['; 32 * MIB], 422, "too_large"),
        batch("brackets, closed, an array", ARRAY, closed(16 * MIB), 422, "too_large"),
        batch("an array of digits", ARRAY, digits, 413, "too_many_records"),
        batch("an array of one string", ARRAY, string, 422, "too_large"),
    ]
}

/// Sends the bomb and reads the answer, also if the server closes before it has read all of it.
fn answer(address: SocketAddr, bomb: &Bomb) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream.set_write_timeout(Some(HANGS)).unwrap();
    let Bomb { path, fields, body, .. } = bomb;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n"
    );
    if let Err(error) = stream.write_all(&[head.as_bytes(), body].concat()) {
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(bytes @ 1..) = stream.read(&mut piece) {
        answer.extend_from_slice(&piece[..bytes]);
    }
    let answer = String::from_utf8(answer).unwrap();
    (answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer to {}", bomb.name)).parse().unwrap(), answer)
}

impl Bomb {
    /// The problem with its answer, if there is one.
    fn fault(&self, address: SocketAddr, others: &[u16]) -> Option<String> {
        let (status, text) = answer(address, self);
        let fits = others.contains(&status) || status == self.status && text.contains(self.code);
        (!fits).then(|| format!("{}: {text}", self.name))
    }
}

/// Starts a server that has accepted its first events.
fn warm(folder: &Folder) -> (Server, usize) {
    let server = Server::start(&folder.data());
    assert_eq!(server.post("/ingest/batch", "0\n1\n").0, 200);
    server.wait_delivered();
    let memory = server.memory("VmRSS");
    (server, memory)
}

/// The greatest growth of the server's memory. The kernel counts pages in batches for each core: without growth the count may
/// even fall.
fn growth(server: &Server, before: usize) -> usize {
    server.memory("VmHWM").saturating_sub(before)
}

/// Each runs in a separate process: memory left from another test would hide its growth.
#[test]
fn bomb_is_answered_and_costs_little() {
    for bomb in bombs() {
        let folder = Folder::new();
        let (server, before) = warm(&folder);
        assert_eq!(bomb.fault(server.intake, &[]), None);
        let growth = growth(&server, before);
        assert!(
            growth <= GROWTH_BYTES_MAX,
            "{} took {} KiB of {} KiB",
            bomb.name,
            growth >> 10,
            GROWTH_BYTES_MAX >> 10
        );
        assert_eq!(server.post("/ingest/event", "2").0, 200, "behind {}", bomb.name);
    }
}

/// Bytes in memory together count as in flight, and at most 64 MiB may be: the rest is rejected. Twice as
/// much leaves room for buffers that grow and for memory that the allocator hasn't returned yet.
#[test]
fn concurrent_bombs_stay_within_the_in_flight_limit() {
    let folder = Folder::new();
    let (server, before) = warm(&folder);
    let (bombs, intake) = (bombs(), server.intake);
    let faults: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = bombs.iter().map(|bomb| scope.spawn(move || bomb.fault(intake, &[503]))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{faults:?}");
    let (growth, allowed) = (growth(&server, before), 2 * 64 * MIB);
    assert!(growth <= allowed, "{} KiB of {} KiB", growth >> 10, allowed >> 10);
    assert_eq!(server.post("/ingest/event", "2").0, 200);
    server.wait_delivered();
}
