//! Follows the requests of a connection through its bytes, so that each head can be checked before hyper sees it.

use crate::chunks::Chunks;
use crate::code::Code;
use crate::head::{self, BodyFraming};
use crate::problem::{Problem, Refused};

/// What comes next on a connection.
#[derive(Debug, Default)]
pub(crate) enum Framing {
    /// A head.
    #[default]
    Head,
    /// So many bytes of a body.
    Length(u64),
    /// The rest of a chunked body.
    Chunked(Chunks),
}

/// What stands behind the bytes that are sound.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Nothing.
    Nothing,
    /// A head whose end isn't there yet.
    PartOfHead,
    /// Something that isn't taken; nothing behind it can be trusted.
    Refused(Refused),
}

impl Framing {
    /// Goes on through `bytes`: how many of them are sound, and what stands behind.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> (usize, Rest) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self {
                Self::Head => match head::check(rest) {
                    Ok(Some(head)) => {
                        at += head.length;
                        *self = Self::of(head.body);
                    }
                    Ok(None) => return (at, Rest::PartOfHead),
                    Err(refused) => return (at, Rest::Refused(refused)),
                },
                Self::Length(left) => {
                    let take = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    at += take;
                    *self = Self::of(BodyFraming::Length(*left - take as u64));
                }
                Self::Chunked(chunks) => match chunks.advance(rest) {
                    Ok(taken) => {
                        at += taken;
                        if chunks.has_ended() {
                            *self = Self::Head;
                        }
                    }
                    Err(_) => {
                        let detail = "a chunk of the body is not framed as RFC 9112 wants it";
                        return (at, Rest::Refused(Problem::boxed(Code::BadRequest, detail)));
                    }
                },
            }
        }
        (at, Rest::Nothing)
    }

    fn of(body: BodyFraming) -> Self {
        match body {
            BodyFraming::Length(0) => Self::Head,
            BodyFraming::Length(left) => Self::Length(left),
            BodyFraming::Chunked => Self::Chunked(Chunks::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    const TWO: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";

    #[test]
    fn requests_follow_each_other_however_they_are_cut() {
        let text = [ONE, TWO, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ONE].concat();
        for cut in 0..text.len() {
            let mut framing = Framing::default();
            let (passed, rest) = framing.advance(&text.as_bytes()[..cut]);
            assert!(!matches!(rest, Rest::Refused(_)), "{cut}");
            let (more, rest) = framing.advance(&text.as_bytes()[passed..]);
            assert!(matches!(rest, Rest::Nothing), "{cut}");
            assert_eq!(passed + more, text.len());
            assert!(matches!(framing, Framing::Head));
        }
    }

    #[test]
    fn what_stands_before_a_bad_head_is_sound() {
        let text = [ONE, "GET / HTTP/1.1\r\n\r\n"].concat();
        let (passed, rest) = Framing::default().advance(text.as_bytes());
        assert_eq!(passed, ONE.len());
        assert!(matches!(rest, Rest::Refused(_)));
    }
}
