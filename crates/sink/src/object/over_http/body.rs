//! The body of a request: bytes at hand, as one or in pieces, or bytes that are made while they are sent. Either way its length is known before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// A body.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Bytes),
    /// Pieces none of which is empty, the next of which is sent.
    Kept {
        pieces: Arc<Vec<Bytes>>,
        next: usize,
        left: u64,
    },
    Made {
        pieces: Receiver<io::Result<Bytes>>,
        left: u64,
    },
}

impl Body {
    pub(super) const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// As the client takes it.
    pub(super) fn into_client(self) -> crate::http_client::Body {
        self.map_err(Into::into).boxed_unsync()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Made { left: 0, .. } => Poll::Ready(None),
            Self::Kept { pieces, next, left } => Poll::Ready(pieces.get(*next).map(|piece| {
                *next += 1;
                *left -= piece.len() as u64;
                Ok(Frame::data(piece.clone()))
            })),
            Self::Made { pieces, left } => pieces.poll_recv(cx).map(|piece| match piece {
                Some(Ok(bytes)) if bytes.len() as u64 <= *left => {
                    *left -= bytes.len() as u64;
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Err(error)) => Some(Err(error)),
                // Whoever made it has ended too early, or has made more than it had said.
                Some(Ok(_)) | None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Kept { left, .. } | Self::Made { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Kept { left, .. } | Self::Made { left, .. } => *left,
        })
    }
}
