//! Follows a request's body to its end.

use crate::error::{RequestError, RequestErrorKind};

use crate::chunks::Chunks;

/// The rest of a body.
#[derive(Debug)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks, up to the last one. Boxed: few bodies come in chunks, and each connection has room for one of these.
    Chunked(Box<Chunks>),
}

impl Framing {
    pub(crate) fn chunked() -> Self {
        Self::Chunked(Box::default())
    }

    /// How many bytes may be read without reading into the next request; without a known length, all.
    pub(crate) fn left(&self) -> usize {
        match self {
            Self::Length(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Self::Chunked(_) => usize::MAX,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.has_ended(),
        }
    }

    /// Advances through `bytes`, of which there is at least one. Returns how many of them belong to the body, and the piece of content among
    /// them. More bytes may follow it.
    ///
    /// # Errors
    /// The body is malformed; what follows it can't be trusted.
    pub(crate) fn advance<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, &'a [u8]), Box<RequestError>> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                Ok((taken, &bytes[..taken]))
            }
            Self::Chunked(chunks) => chunks.advance(bytes).map_err(|_| {
                RequestError::boxed(
                    RequestErrorKind::BadRequest,
                    "a chunk of the body is not framed as RFC 9112 requires: correct the client, or send \
                     Content-Length",
                )
            }),
        }
    }
}
