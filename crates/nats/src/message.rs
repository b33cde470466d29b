//! A received message, and its headers.

use std::ops::Range;

use bytes::{Buf, Bytes};

/// The beginning of a block of headers.
pub(crate) const HEADERS: &[u8] = b"NATS/1.0";

/// A received message. It keeps one copy of its frame.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) frame: Bytes,
    /// The id of its subscription on its connection.
    pub(crate) subscription: u64,
    pub(crate) subject: Range<usize>,
    pub(crate) reply: Range<usize>,
    pub(crate) headers: Range<usize>,
    /// The end of the payload, which follows the headers.
    pub(crate) end: usize,
}

/// A block of headers isn't as the protocol defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message's headers are malformed: expected NATS/1.0, and lines with a name, a colon and a value")]
pub struct MalformedHeaders;

impl Message {
    /// The subject, of any bytes but white space.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        &self.frame[self.subject.clone()]
    }

    /// The subject that its sender expects the response on.
    #[must_use]
    pub fn reply(&self) -> Option<&[u8]> {
        Some(&self.frame[self.reply.clone()]).filter(|reply| !reply.is_empty())
    }

    /// The headers; none without a block of headers.
    ///
    /// # Errors
    /// Another client has sent a malformed block, which the server doesn't check.
    pub fn headers(&self) -> Result<Headers<'_>, MalformedHeaders> {
        Headers::parse(&self.frame[self.headers.clone()])
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.frame[self.headers.end..self.end]
    }

    /// The payload, without a copy.
    #[must_use]
    pub fn into_payload(mut self) -> Bytes {
        self.frame.truncate(self.end);
        self.frame.advance(self.headers.end);
        self.frame
    }

    /// Whether the server reports that no client listens to a request's subject.
    pub(crate) fn is_no_responders(&self) -> bool {
        self.headers.end == self.end && self.frame[self.headers.clone()].starts_with(b"NATS/1.0 503")
    }

    /// Bytes that it keeps in memory.
    #[must_use]
    pub const fn size(&self) -> usize {
        size_of::<Self>() + self.frame.len()
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Message(\"{}\")", self.frame[..self.end].escape_ascii())
    }
}

/// A message's headers: their lines have names of visible characters, and values without control characters but tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    status: Option<u16>,
    /// The lines, each with its end.
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    pub(crate) fn parse(block: &'a [u8]) -> Result<Self, MalformedHeaders> {
        if block.is_empty() {
            return Ok(Self { status: None, lines: block });
        }
        let rest = block.strip_prefix(HEADERS).ok_or(MalformedHeaders)?;
        let (first, rest) = line(rest).ok_or(MalformedHeaders)?;
        let lines = rest.strip_suffix(b"\r\n").ok_or(MalformedHeaders)?;
        let headers = Self { status: status(first)?, lines };
        let mut left = lines;
        while !left.is_empty() {
            let (line, rest) = line(left).ok_or(MalformedHeaders)?;
            let (name, value) = split(line).ok_or(MalformedHeaders)?;
            let is_wrong = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
            if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) || value.iter().any(is_wrong) {
                return Err(MalformedHeaders);
            }
            left = rest;
        }
        Ok(headers)
    }

    /// The status of three digits in the first line.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        self.status
    }

    /// The first value with this name, regardless of case, without white space around it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find_map(|(known, value)| known.eq_ignore_ascii_case(name.as_bytes()).then_some(value))
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut left = self.lines;
        std::iter::from_fn(move || {
            let (line, rest) = line(left)?;
            left = rest;
            split(line)
        })
    }
}

/// The text after the version: nothing, or a status and its description.
fn status(text: &[u8]) -> Result<Option<u16>, MalformedHeaders> {
    let Some((first, _)) = text.split_first() else { return Ok(None) };
    let text = text.trim_ascii();
    let digits = text.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    match digits {
        _ if text.is_empty() => Ok(None),
        Some(digits) if *first == b' ' && text.get(3).is_none_or(|next| *next == b' ') => {
            Ok(Some(digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))))
        }
        _ => Err(MalformedHeaders),
    }
}

/// The first line without its end, and the rest.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((bytes[..end].strip_suffix(b"\r")?, &bytes[end + 1..]))
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (Option<u16>, Vec<(String, String)>);

    fn all(block: &str) -> Result<Parts, MalformedHeaders> {
        let headers = Headers::parse(block.as_bytes())?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok((headers.status(), headers.iter().map(|(name, value)| (text(name), text(value))).collect()))
    }

    #[test]
    fn headers_have_status_names_and_values() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (block, status, pairs) in [
            ("", None, vec![]),
            ("NATS/1.0\r\n\r\n", None, vec![]),
            ("NATS/1.0 503\r\n\r\n", Some(503), vec![]),
            ("NATS/1.0 404 No Messages\r\n\r\n", Some(404), vec![]),
            (
                "NATS/1.0\r\nA: b\r\nEmpty:\r\nC:d:e\tf \r\n\r\n",
                None,
                vec![pair("A", "b"), pair("Empty", ""), pair("C", "d:e\tf")],
            ),
        ] {
            assert_eq!(all(block), Ok((status, pairs)), "{block:?}");
        }
        let headers =
            Headers::parse(b"NATS/1.0\r\nForebay-Status: 201\r\nforebay-status: 2\r\nX: \xff\r\n\r\n").unwrap();
        assert_eq!(headers.get("FOREBAY-STATUS"), Some(&b"201"[..]), "the first one, regardless of case");
        assert_eq!((headers.get("x"), headers.get("Forebay")), (Some(&b"\xff"[..]), None));
    }

    #[test]
    fn malformed_headers_are_recognised() {
        for block in [
            "NATS/1.0",
            "NATS/1.0\r\n",
            "NATS/2.0\r\n\r\n",
            "NATS/1.01\r\n\r\n",
            "NATS/1.0 50\r\n\r\n",
            "NATS/1.0 5034\r\n\r\n",
            "NATS/1.0 abc\r\n\r\n",
            "NATS/1.0\n\r\n",
            "NATS/1.0\r\nno colon\r\n\r\n",
            "NATS/1.0\r\n: v\r\n\r\n",
            "NATS/1.0\r\nA b: v\r\n\r\n",
            "NATS/1.0\r\nA : v\r\n\r\n",
            "NATS/1.0\r\nA: v\r\n folded\r\n\r\n",
            "NATS/1.0\r\nA: v\nB: w\r\n\r\n",
            "NATS/1.0\r\nA: v\rw\r\n\r\n",
            "NATS/1.0\r\nA: v\0\r\n\r\n",
            "NATS/1.0\r\nA: v\r\n\r\nB: w\r\n\r\n",
            "NATS/1.0\r\nA: v\r\n",
            "\r\n",
        ] {
            assert_eq!(all(block), Err(MalformedHeaders), "{block:?}");
        }
    }
}
