//! Reads an answer as it arrives, without keeping its body.

use httparse::{EMPTY_HEADER, Status};

use crate::bench::answer::{Facts, Framing, HEADERS_MAX, Malformed, parse_head};

/// The most bytes of a head, of the line of a chunk, or of trailers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// So much of an error's body is kept: the problem is at its beginning.
const KEPT_BYTES_MAX: usize = 2 * 1024;

/// An answer of which some bytes may have been received.
#[derive(Default)]
pub(super) struct Reading {
    part: Part,
    is_chunked: bool,
    /// Bytes of a head that isn't complete.
    held: Vec<u8>,
    /// Whether a byte has arrived.
    pub(super) has_begun: bool,
    /// 0 before the head.
    pub(super) status: u16,
    /// Whether the server closes the connection after it.
    pub(super) closes: bool,
    /// The beginning of the body, if the status is an error.
    pub(super) kept: Vec<u8>,
}

/// What is read next.
#[derive(Clone, Copy, Default)]
enum Part {
    #[default]
    Head,
    /// So many bytes of a body, or of a chunk and the line break after it.
    Body(u64),
    ChunkLine,
    Trailers,
    End,
}

impl Reading {
    /// Reads the next bytes. Returns whether the answer is complete.
    pub(super) fn feed(&mut self, new: &[u8]) -> Result<bool, Malformed> {
        self.has_begun |= !new.is_empty();
        let mut held = std::mem::take(&mut self.held);
        let mut bytes = if held.is_empty() {
            new
        } else {
            held.extend_from_slice(new);
            &held
        };
        loop {
            if let Part::Body(left) = self.part {
                let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.keep(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.part = match (left - taken as u64, self.is_chunked) {
                    (0, true) => Part::ChunkLine,
                    (0, false) => Part::End,
                    (left, _) => Part::Body(left),
                };
            }
            match self.part {
                // One request is answered by one response.
                Part::End => return if bytes.is_empty() { Ok(true) } else { Err(Malformed) },
                Part::Body(1..) => return Ok(false),
                _ => {}
            }
            let Some(taken) = self.step(bytes)? else {
                if bytes.len() > HEAD_BYTES_MAX {
                    return Err(Malformed);
                }
                self.held = bytes.to_vec();
                return Ok(false);
            };
            bytes = &bytes[taken..];
        }
    }

    /// Reads a head, the line of a chunk, or trailers. Returns their length; none while their end isn't there.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut trailers = [EMPTY_HEADER; HEADERS_MAX];
        let (taken, part) = match self.part {
            Part::Head => {
                let Some((taken, Facts { status, closes, framing })) = parse_head(bytes)? else { return Ok(None) };
                // 100 Continue and its like only announce the answer.
                if (100..200).contains(&status) {
                    return Ok(Some(taken));
                }
                (self.status, self.closes) = (status, closes);
                match framing.ok_or(Malformed)? {
                    Framing::Length(length) => (taken, Part::Body(length as u64)),
                    Framing::Chunked => {
                        self.is_chunked = true;
                        (taken, Part::ChunkLine)
                    }
                }
            }
            Part::ChunkLine => match httparse::parse_chunk_size(bytes).map_err(|_| Malformed)? {
                Status::Partial => return Ok(None),
                Status::Complete((taken, 0)) => (taken, Part::Trailers),
                Status::Complete((taken, size)) => (taken, Part::Body(size.saturating_add(2))),
            },
            _ => match httparse::parse_headers(bytes, &mut trailers).map_err(|_| Malformed)? {
                Status::Partial => return Ok(None),
                Status::Complete((taken, _)) => (taken, Part::End),
            },
        };
        self.part = part;
        Ok(Some(taken))
    }

    fn keep(&mut self, body: &[u8]) {
        if self.status >= 400 {
            let room = KEPT_BYTES_MAX.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&body[..body.len().min(room)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer is the same, however its bytes are divided, and nothing may follow it.
    fn check(text: &str, expected: (u16, bool, &str)) {
        for first in 0..text.len() {
            let mut reading = Reading::default();
            assert_eq!(reading.feed(&text.as_bytes()[..first]), Ok(false), "{first} bytes of {text:?}");
            assert_eq!(reading.has_begun, first > 0);
            assert_eq!(reading.feed(&text.as_bytes()[first..]), Ok(true), "{first} bytes of {text:?}");
            let kept = std::str::from_utf8(&reading.kept).unwrap();
            assert_eq!((reading.status, reading.closes, kept), expected);
        }
        let mut reading = Reading::default();
        let bytes = text.as_bytes().iter().map(|byte| reading.feed(&[*byte]).unwrap());
        assert_eq!(bytes.filter(|is_complete| *is_complete).count(), 1, "byte by byte: {text:?}");
        assert_eq!(Reading::default().feed(format!("{text}H").as_bytes()), Err(Malformed));
    }

    #[test]
    fn answer_ends_where_its_head_says() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, false, ""));
        check("HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy", (503, true, "busy"));
        check("HTTP/1.1 304 Not Modified\r\n\r\n", (304, false, ""));
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 N\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nA: b\r\n\r\n",
            (404, false, "abc\r\nd\r\n"),
        );
    }

    #[test]
    fn endless_head_and_other_protocols_are_malformed() {
        for text in ["SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            assert_eq!(Reading::default().feed(text.as_bytes()), Err(Malformed), "{text}");
        }
        let mut reading = Reading::default();
        let part = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES_MAX / 2 - 10));
        assert_eq!((reading.feed(part.as_bytes()), reading.feed(&part.as_bytes()[20..])), (Ok(false), Ok(false)));
        assert_eq!(reading.feed(&[b'x'; 100]), Err(Malformed));
    }

    #[test]
    fn large_body_is_not_kept() {
        let mut reading = Reading::default();
        assert_eq!(reading.feed(b"HTTP/1.1 500 N\r\nContent-Length: 10000000\r\n\r\n"), Ok(false));
        for _ in 0..99 {
            assert_eq!(reading.feed(&[b'x'; 100_000]), Ok(false));
        }
        assert_eq!((reading.feed(&[b'x'; 100_000]), reading.kept.len()), (Ok(true), KEPT_BYTES_MAX));
    }
}
