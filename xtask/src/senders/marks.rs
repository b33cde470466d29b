//! Marks: each event of a campaign has one, as text, so it can be found in any protocol and in any store.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::message::Message;

/// Events that each sender sends, numbered from 0.
pub(super) const EVENTS: usize = 1_000;
const PREFIX: &[u8] = b"mark-";
const DIGITS: usize = 4;

/// The mark of an event.
pub(super) fn mark(number: usize) -> String {
    format!("mark-{number:04}")
}

/// The numbers of the marks in a text, each once.
pub(super) fn find(text: &[u8]) -> BTreeSet<usize> {
    memchr::memmem::find_iter(text, PREFIX).filter_map(|at| number(text.get(at + PREFIX.len()..)?)).collect()
}

fn number(text: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(text.get(..DIGITS)?).ok()?.parse().ok()?;
    (number < EVENTS).then_some(number)
}

/// The numbers of the marks in a request's body. A body that can't be decoded has none.
pub(super) fn of_request(request: &Message) -> BTreeSet<usize> {
    find(&decoded(request))
}

/// The body without its compression.
pub(super) fn decoded(message: &Message) -> Vec<u8> {
    if message.header("content-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("gzip")) {
        let mut plain = Vec::new();
        let is_whole = MultiGzDecoder::new(&message.body[..]).read_to_end(&mut plain).is_ok();
        return if is_whole { plain } else { Vec::new() };
    }
    let is_protobuf = message.header("content-type").is_some_and(|kind| kind.starts_with("application/x-protobuf"));
    // Loki's protobuf is compressed with snappy, and no header says so.
    if is_protobuf && message.first_line.contains("/loki/") {
        return snap::raw::Decoder::new().decompress_vec(&message.body).unwrap_or_default();
    }
    message.body.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn message(headers: &str, path: &str, body: &[u8]) -> Message {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        Message::read(&mut &[head.as_bytes(), body].concat()[..], None).unwrap().unwrap()
    }

    #[test]
    fn marks_are_found_in_text() {
        let text = format!("{{\"a\":\"{}\"}} {} {} mark-x mark-99 mark-1000", mark(7), mark(999), mark(7));
        assert_eq!(find(text.as_bytes()), BTreeSet::from([7, 999]));
    }

    #[test]
    fn marks_are_found_in_compressed_bodies() {
        // Compressed, the later ones refer to the first.
        let text: String = (40..49).map(mark).collect();
        let all: BTreeSet<usize> = (40..49).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        assert_eq!(of_request(&message("Content-Encoding: gzip\r\n", "/", &gzip.finish().unwrap())), all);
        let snappy = snap::raw::Encoder::new().compress_vec(text.as_bytes()).unwrap();
        let kind = "Content-Type: application/x-protobuf\r\n";
        assert_eq!(of_request(&message(kind, "/loki/api/v1/push", &snappy)), all);
    }
}
