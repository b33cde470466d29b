//! Follows a chunked body to its end (RFC 9112 §7.1), strictly: lines end in CR LF, and sizes are digits.

use limits::HEADER_BYTES_MAX;

use crate::chunk_extension::Extension;
use crate::syntax::{BadChunk, is_of_name, is_of_value};

/// Bytes of a line with a size, and of the trailers: no client needs more.
const LINE_BYTES_MAX: usize = 256;
const TRAILER_BYTES_MAX: usize = 4096;
/// Bytes of all extensions of a body: as many as a head has. Otherwise a small body could need many bytes.
const EXTENSION_BYTES_MAX: usize = HEADER_BYTES_MAX;
/// A size must fit 64 bits.
const SIZE_DIGITS_MAX: usize = 15;

/// The position in a chunked body.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    at: At,
    /// Bytes of the line so far, or of the trailers.
    passed: usize,
    /// Bytes of extensions so far.
    extension_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// In the digits of a size.
    #[default]
    Start,
    Size(u64),
    Extension(u64, Extension),
    SizeEnd(u64),
    Data(u64),
    DataEnd,
    DataEndLf,
    /// At the start of a trailer's line, which may be the last.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    Ingested,
}

impl Chunks {
    /// Advances through `bytes` up to the end of the first piece of data. Returns how many bytes it consumed, and that piece, which may be
    /// empty.
    ///
    /// # Errors
    /// The body breaks the rules.
    pub(crate) fn advance<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8]), BadChunk> {
        let mut at = 0;
        while at < bytes.len() && !self.has_ended() {
            if let At::Data(left) = self.at {
                let data = &bytes[at..];
                let data = &data[..usize::try_from(left).unwrap_or(usize::MAX).min(data.len())];
                let left = left - data.len() as u64;
                self.at = if left == 0 { At::DataEnd } else { At::Data(left) };
                return Ok((at + data.len(), data));
            }
            self.at = self.step(bytes[at])?;
            at += 1;
        }
        Ok((at, &[]))
    }

    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.at, At::Ingested)
    }

    fn step(&mut self, byte: u8) -> Result<At, BadChunk> {
        self.passed += 1;
        match (self.at, byte) {
            (At::Start, _) => digit(byte).map(At::Size),
            (At::Size(size), b'\r') => Ok(At::SizeEnd(size)),
            (At::Size(size), b' ' | b'\t' | b';') => self.extend(size, Extension::Spaces, byte),
            (At::Extension(size, extension), b'\r') if extension.may_end() => Ok(At::SizeEnd(size)),
            (At::Extension(size, extension), _) => self.extend(size, extension, byte),
            (At::Size(size), _) if self.passed <= SIZE_DIGITS_MAX => Ok(At::Size(size * 16 + digit(byte)?)),
            (At::SizeEnd(size), b'\n') => {
                self.passed = 0;
                Ok(if size == 0 { At::TrailerStart } else { At::Data(size) })
            }
            (At::DataEnd, b'\r') => Ok(At::DataEndLf),
            (At::DataEndLf, b'\n') => {
                self.passed = 0;
                Ok(At::Start)
            }
            (At::TrailerStart, b'\r') => Ok(At::LastLf),
            (At::TrailerValue, b'\r') => Ok(At::TrailerLf),
            (At::TrailerLf, b'\n') => Ok(At::TrailerStart),
            (At::LastLf, b'\n') => Ok(At::Ingested),
            _ if self.passed > TRAILER_BYTES_MAX => Err(BadChunk),
            (At::TrailerStart | At::TrailerName, _) if is_of_name(byte) => Ok(At::TrailerName),
            (At::TrailerName, b':') => Ok(At::TrailerValue),
            (At::TrailerValue, _) if is_of_value(byte) => Ok(At::TrailerValue),
            _ => Err(BadChunk),
        }
    }

    fn extend(&mut self, size: u64, extension: Extension, byte: u8) -> Result<At, BadChunk> {
        self.extension_bytes += 1;
        if self.passed > LINE_BYTES_MAX || self.extension_bytes > EXTENSION_BYTES_MAX {
            return Err(BadChunk);
        }
        Ok(At::Extension(size, extension.step(byte)?))
    }
}

fn digit(byte: u8) -> Result<u64, BadChunk> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(BadChunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &[u8] = b"5\r\nhello\r\n1A;x=\"y\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nx: y\r\n\r\n";

    proptest! {
        #[test]
        fn chunked_body_end_is_found_in_any_split(cuts in prop::collection::vec(0..BODY.len(), 0..6)) {
            let bytes = [BODY, b"GET"].concat();
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let (mut chunks, mut at, mut content) = (Chunks::default(), 0, Vec::new());
            for cut in cuts {
                while at < cut && !chunks.has_ended() {
                    let (passed, data) = chunks.advance(&bytes[at..cut]).unwrap();
                    at += passed;
                    content.extend_from_slice(data);
                }
            }
            prop_assert!(chunks.has_ended());
            prop_assert_eq!(at, BODY.len());
            prop_assert_eq!(content, b"helloabcdefghijklmnopqrstuvwxyz");
        }
    }

    #[test]
    fn invalid_chunked_bodies_are_rejected() {
        for body in [
            "\r\n",
            "g\r\n",
            " 5\r\n",
            "5 \r\n",
            "5\n",
            "5\r\nhelloX\r\n",
            "5\r\nhello\n",
            "5;a\nb\r\n",
            "0000000000000005\r\n",
            "0\r\n x\r\n",
            "0\r\nx\n",
            "0\r\n\rx",
            "0x5\r\n",
            "5;\r\n",
            "5;=a\r\n",
            "5;a\0\r\n",
            "5;a=\r\n",
            "5;a=\"b\r\n",
            "5 a\r\n",
            "0\r\nGET / HTTP/1.1\r\n\r\n",
            "0\r\nfoo\r\n\r\n",
            "0\r\nx : y\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "0\r\nx: \0\r\n\r\n",
        ] {
            assert!(is_bad(body.as_bytes()), "{body:?}");
        }
        assert!(is_bad(("5;".to_owned() + &"x".repeat(LINE_BYTES_MAX)).as_bytes()));
        assert!(is_bad(format!("1;{}\r\n \r\n", "x".repeat(200)).repeat(100).as_bytes()));
        assert!(!is_bad(b"5 ; a = \"\\\"\";b\r\nhello\r\n0\r\n\r\n"));
        assert!(!is_bad(BODY));
    }

    fn is_bad(mut bytes: &[u8]) -> bool {
        let mut chunks = Chunks::default();
        while !bytes.is_empty() {
            match chunks.advance(bytes) {
                Ok((passed, _)) => bytes = &bytes[passed..],
                Err(BadChunk) => return true,
            }
        }
        false
    }
}
