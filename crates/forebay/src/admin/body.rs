//! The body of an answer: a whole text, or lines that are sent as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// The body of an answer of the admin port.
pub(crate) enum AdminBody {
    /// All of it is known. `None` after it was sent.
    Whole(Option<Bytes>),
    /// Ends when the sender is dropped. The sender sees a closed channel when the client is gone.
    Stream(Receiver<Bytes>),
}

impl<B: Into<Bytes>> From<B> for AdminBody {
    fn from(bytes: B) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()),
            Self::Stream(lines) => ready!(lines.poll_recv(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
