//! The body of an answer: whole bytes, or parts that are sent as they arrive.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};

/// The body of an answer of the admin port.
pub(crate) enum AdminBody {
    /// All of it is known; what is left of it to send. `None` after it was sent.
    Whole(Option<Bytes>),
    /// Ends when the sender is dropped; as an error if [`Parts`] expects an end and got none. The sender sees a closed channel when the client is gone.
    Stream(Parts),
    /// A stream that also ends when its client may no longer read it.
    Guarded(Box<Guarded>),
}

/// The parts of a stream.
pub(crate) struct Parts {
    parts: Receiver<Bytes>,
    /// Of a body with an end: a message says that all parts were sent. Without it the body ends as an error, so its
    /// client sees an incomplete answer.
    end: Option<oneshot::Receiver<()>>,
}

impl From<Receiver<Bytes>> for Parts {
    fn from(parts: Receiver<Bytes>) -> Self {
        Self { parts, end: None }
    }
}

impl Parts {
    /// Parts that are incomplete without a message to `end`, which is sent before the sender of parts is dropped.
    pub(super) const fn until(parts: Receiver<Bytes>, end: oneshot::Receiver<()>) -> Self {
        Self { parts, end: Some(end) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let part = ready!(self.parts.poll_recv(context));
        Poll::Ready(part.map(Ok).or_else(|| self.ended()))
    }

    /// What follows the last part: an error if the body is incomplete.
    fn ended(&mut self) -> Option<io::Result<Bytes>> {
        let is_whole = self.end.take().is_none_or(|mut end| end.try_recv().is_ok());
        (!is_whole).then(|| Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

/// Bytes of a whole body that the connection gets at a time.
const PART_BYTES: usize = 64 * 1024;
/// How often a stream checks whether its client may still read it.
const RECHECK_EVERY: Duration = Duration::from_secs(2);

/// A stream with its guard.
pub(crate) struct Guarded {
    parts: Parts,
    recheck: Interval,
    is_allowed: Box<dyn Fn() -> bool + Send>,
}

impl AdminBody {
    /// Ends a stream when `is_allowed` says no, at most 2 s later. Other bodies stay as they are.
    pub(super) fn guarded(self, is_allowed: impl Fn() -> bool + Send + 'static) -> Self {
        let Self::Stream(parts) = self else { return self };
        let mut recheck = tokio::time::interval(RECHECK_EVERY);
        recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Guarded(Box::new(Guarded { parts, recheck, is_allowed: Box::new(is_allowed) }))
    }
}

impl Guarded {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        while self.recheck.poll_tick(context).is_ready() {
            if !(self.is_allowed)() {
                return Poll::Ready(self.parts.ended());
            }
        }
        self.parts.poll(context)
    }
}

/// The next part of a whole body. The connection copies what it gets, and asks for more when the client takes it.
fn next_part(left: &mut Option<Bytes>) -> Option<Bytes> {
    let part = left.as_mut().map(|bytes| bytes.split_to(PART_BYTES.min(bytes.len())));
    left.take_if(|bytes| bytes.is_empty());
    part.filter(|part| !part.is_empty())
}

impl<B: Into<Bytes>> From<B> for AdminBody {
    fn from(bytes: B) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => next_part(bytes).map(Ok),
            Self::Stream(parts) => ready!(parts.poll(context)),
            Self::Guarded(guarded) => ready!(guarded.poll(context)),
        };
        Poll::Ready(bytes.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream(_) | Self::Guarded(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) | Self::Guarded(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stream_ends_when_its_client_may_not_read() {
        let (lines, received) = tokio::sync::mpsc::channel(4);
        let is_allowed = Arc::new(AtomicBool::new(true));
        let asked = is_allowed.clone();
        let mut body = AdminBody::Stream(received.into()).guarded(move || asked.load(Ordering::Relaxed));
        let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        lines.send("1".into()).await.unwrap();
        assert!(next().await.is_some());
        is_allowed.store(false, Ordering::Relaxed);
        let began = tokio::time::Instant::now();
        assert!(next().await.is_none(), "no line comes, and it ends");
        assert!(began.elapsed() <= RECHECK_EVERY + Duration::from_millis(1));
    }

    #[tokio::test]
    async fn body_without_its_end_is_an_error() {
        for (is_sent, is_allowed) in [(true, true), (false, true), (false, false)] {
            let (parts, received) = tokio::sync::mpsc::channel(4);
            let (end, ended) = oneshot::channel();
            let mut body = AdminBody::Stream(Parts::until(received, ended)).guarded(move || is_allowed);
            let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            if is_allowed {
                parts.send("1".into()).await.unwrap();
                assert!(next().await.is_some_and(|part| part.is_ok()));
            }
            if is_sent {
                end.send(()).unwrap();
            }
            drop(parts);
            assert_eq!(next().await.map(|part| part.is_err()), (!is_sent).then_some(true), "{is_sent} {is_allowed}");
            assert!(next().await.is_none());
        }
    }
}
