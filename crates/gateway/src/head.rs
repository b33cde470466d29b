//! Checks a request's line and headers before hyper sees them: what two readers could understand in two ways is
//! refused (RFC 9112 §11.2), and with it what hyper passes over. Everything else is left to hyper.

use event::limits::HEADER_BYTES_MAX;

use crate::code::Code;
use crate::problem::{Problem, Refused};

/// How a body's end is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
}

/// A head that is complete and sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its bytes, with the blank line.
    pub(crate) length: usize,
    pub(crate) body: BodyFraming,
}

/// Looks for a head at the start of `bytes`; `None` if its end isn't there yet.
///
/// # Errors
/// The head is ambiguous or too long.
pub(crate) fn check(bytes: &[u8]) -> Result<Option<Head>, Refused> {
    let mut at = 0;
    while bytes[at..].starts_with(b"\r\n") {
        at += 2;
    }
    let start = at;
    let mut fields = Fields::default();
    let mut lines = 0;
    while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
        let line = whole_line(&bytes[at..at + length])?;
        at += length + 1;
        if at > HEADER_BYTES_MAX {
            break;
        }
        lines += 1;
        if lines == 1 {
            fields.is_http_11 = line.ends_with(b" HTTP/1.1");
        } else if line.is_empty() {
            check_line_ends(&bytes[start..at], lines)?;
            return fields.body().map(|body| Some(Head { length: at, body }));
        } else {
            fields.take(line)?;
        }
    }
    if bytes.len() > HEADER_BYTES_MAX {
        let detail = format!("a request's line and headers have at most {HEADER_BYTES_MAX} bytes");
        return Err(Problem::boxed(Code::HeaderTooLarge, detail));
    }
    Ok(None)
}

fn bad(detail: &'static str) -> Refused {
    Problem::boxed(Code::BadRequest, detail)
}

const LINE_END: &str = "a line of the head must end in CR LF and have no other CR";

/// A line without its end, which must be `\r\n`.
fn whole_line(line: &[u8]) -> Result<&[u8], Refused> {
    line.strip_suffix(b"\r").ok_or_else(|| bad(LINE_END))
}

/// Each line is known to end in a CR: no more of them may be there. One pass over the head is quicker than one over
/// each line.
fn check_line_ends(head: &[u8], lines: usize) -> Result<(), Refused> {
    if memchr::memchr_iter(b'\r', head).count() == lines { Ok(()) } else { Err(bad(LINE_END)) }
}

/// The fields that decide where a request ends, and Host.
#[derive(Debug, Default)]
struct Fields {
    is_http_11: bool,
    length: Option<u64>,
    is_chunked: bool,
    has_host: bool,
}

impl Fields {
    fn take(&mut self, line: &[u8]) -> Result<(), Refused> {
        match line[0] | 0x20 {
            b'c' => match value_of(line, b"content-length:") {
                Some(value) => self.take_length(value),
                None => Ok(()),
            },
            b't' => match value_of(line, b"transfer-encoding:") {
                Some(value) => self.take_coding(value),
                None => Ok(()),
            },
            b'h' if value_of(line, b"host:").is_some() => match std::mem::replace(&mut self.has_host, true) {
                true => Err(bad("there is more than one Host")),
                false => Ok(()),
            },
            // A space or tab, with the bit that tells cases apart set.
            b' ' | b')' if matches!(line[0], b' ' | b'\t') => Err(bad("a header is folded over two lines")),
            _ => Ok(()),
        }
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), Refused> {
        let is_number = !value.is_empty() && value.len() <= LENGTH_DIGITS_MAX && value.iter().all(u8::is_ascii_digit);
        if !is_number || self.length.is_some() {
            return Err(bad("there must be one Content-Length, a decimal number"));
        }
        self.length = Some(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
        Ok(())
    }

    fn take_coding(&mut self, value: &[u8]) -> Result<(), Refused> {
        if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(bad("the only Transfer-Encoding that is taken is `chunked`, once"));
        }
        self.is_chunked = true;
        Ok(())
    }

    fn body(&self) -> Result<BodyFraming, Refused> {
        if self.is_http_11 && !self.has_host {
            return Err(bad("a request of HTTP/1.1 must have a Host"));
        }
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(bad("there are both Content-Length and Transfer-Encoding")),
            (true, None) if !self.is_http_11 => Err(bad("Transfer-Encoding needs HTTP/1.1")),
            (true, None) => Ok(BodyFraming::Chunked),
            (false, length) => Ok(BodyFraming::Length(length.unwrap_or(0))),
        }
    }
}

/// So that the number fits 64 bits.
const LENGTH_DIGITS_MAX: usize = 18;

/// The value of a header line if it has this name, without the spaces around it.
fn value_of<'a>(line: &'a [u8], name_and_colon: &[u8]) -> Option<&'a [u8]> {
    let (name, value) = line.split_at_checked(name_and_colon.len())?;
    name.eq_ignore_ascii_case(name_and_colon).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Code> {
        check(text.as_bytes()).map_err(|problem| problem.code)
    }

    #[test]
    fn sound_heads_tell_how_their_body_ends() {
        for (fields, body) in [
            ("Host: a", BodyFraming::Length(0)),
            ("host:a\r\nContent-Type: x\r\nCONTENT-LENGTH:  12 ", BodyFraming::Length(12)),
            ("Host: a\r\nTransfer-Encoding: Chunked", BodyFraming::Chunked),
            ("Host: a\r\nTE: trailers\r\nConnection: close\r\nHostile: x", BodyFraming::Length(0)),
        ] {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
            let found = head(&(text.clone() + "rest")).unwrap().unwrap();
            assert_eq!(found, Head { length: text.len(), body }, "{fields}");
            for cut in 0..text.len() {
                assert_eq!(head(&text[..cut]), Ok(None), "{cut} of {text:?}");
            }
        }
        assert!(head("\r\nGET / HTTP/1.0\r\n\r\n").unwrap().is_some());
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        for fields in [
            "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
            "Host: a\r\nContent-Length: 1\r\nContent-Length: 1",
            "Host: a\r\nContent-Length: +1",
            "Host: a\r\nContent-Length: 0x1",
            "Host: a\r\nContent-Length: 1, 1",
            "Host: a\r\nContent-Length:",
            "Host: a\r\nContent-Length: 1000000000000000000",
            "Host: a\r\nTransfer-Encoding: xchunked",
            "Host: a\r\nTransfer-Encoding: gzip, chunked",
            "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Host: a\r\nX: y\r\n z",
            "Host: a\r\nX: y\r\n\tz",
            "Host: a\nX: y",
            "Host: a\r\nX: y\rz",
            "Host: a\r\nHost: a",
            "X: y",
        ] {
            assert_eq!(head(&format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n")), Err(Code::BadRequest), "{fields:?}");
        }
        assert_eq!(head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Code::BadRequest));
    }

    #[test]
    fn a_head_has_a_limit_whether_it_ends_or_not() {
        let start = "POST / HTTP/1.1\r\nHost: a\r\nX: ";
        let fits = HEADER_BYTES_MAX - start.len() - 4;
        let text = |filler: usize, end: &str| start.to_owned() + &"x".repeat(filler) + end;
        assert!(head(&text(fits, "\r\n\r\n")).unwrap().is_some());
        assert_eq!(head(&text(fits + 1, "\r\n\r\n")), Err(Code::HeaderTooLarge));
        assert_eq!(head(&text(HEADER_BYTES_MAX, "")), Err(Code::HeaderTooLarge));
    }
}
