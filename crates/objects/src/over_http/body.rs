//! The body of a request: bytes in memory, as one or in pieces, or bytes that are produced while they are sent. In each
//! case the length is known before.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// A body.
#[derive(Debug)]
pub enum UploadBody {
    /// Bytes in memory.
    Whole(Bytes),
    /// Pieces in memory, none of which is empty.
    Kept {
        /// The pieces.
        pieces: vec::IntoIter<Bytes>,
        /// Bytes that are left to send.
        left: u64,
    },
    /// Pieces that a thread encodes while they are sent.
    Made {
        /// The pieces.
        pieces: Receiver<io::Result<Bytes>>,
        /// Bytes that are left to send.
        left: u64,
    },
    /// Bytes that another process sends, forwarded on arrival.
    Passed {
        /// The body that they are read from.
        from: net::http_client::RequestBody,
        /// Bytes that are left to send.
        left: u64,
    },
}

impl UploadBody {
    /// A body without bytes.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// Converts it to a body of the HTTP client.
    #[must_use]
    pub fn into_client(self) -> net::http_client::RequestBody {
        self.map_err(Into::into).boxed_unsync()
    }
}

impl HttpBody for UploadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Made { left: 0, .. } => Poll::Ready(None),
            Self::Kept { pieces, left } => Poll::Ready(pieces.next().map(|piece| {
                *left -= piece.len() as u64;
                Ok(Frame::data(piece))
            })),
            Self::Passed { from, left } => poll_passed(from, left, cx),
            Self::Made { pieces, left } => pieces.poll_recv(cx).map(|piece| match piece {
                Some(Ok(bytes)) if bytes.len() as u64 <= *left => {
                    *left -= bytes.len() as u64;
                    Some(Ok(Frame::data(bytes)))
                }
                Some(Err(error)) => Some(Err(error)),
                // The thread has ended too early, or has produced more than announced.
                Some(Ok(_)) | None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Kept { left, .. } | Self::Made { left, .. } => *left == 0,
            Self::Passed { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Kept { left, .. } | Self::Made { left, .. } => *left,
            Self::Passed { left, .. } => *left,
        })
    }
}

/// Forwards exactly the announced number of bytes.
fn poll_passed(
    from: &mut net::http_client::RequestBody,
    left: &mut u64,
    cx: &mut Context<'_>,
) -> Poll<Option<io::Result<Frame<Bytes>>>> {
    loop {
        let frame = std::task::ready!(Pin::new(&mut *from).poll_frame(cx));
        let piece = match frame.map(|frame| frame.map(Frame::into_data)) {
            // Trailers aren't needed.
            Some(Ok(Err(_))) => continue,
            Some(Ok(Ok(piece))) => piece,
            None if *left == 0 => return Poll::Ready(None),
            Some(Err(_)) | None => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
        };
        let Some(rest) = left.checked_sub(piece.len() as u64) else {
            return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
        };
        *left = rest;
        return Poll::Ready(Some(Ok(Frame::data(piece))));
    }
}
