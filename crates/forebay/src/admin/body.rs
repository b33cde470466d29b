//! The body of an answer: a whole text, or lines that are sent as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Interval, MissedTickBehavior};

/// The body of an answer of the admin port.
pub(crate) enum AdminBody {
    /// All of it is known; what is left of it to send. `None` after it was sent.
    Whole(Option<Bytes>),
    /// Ends when the sender is dropped. The sender sees a closed channel when the client is gone.
    Stream(Receiver<Bytes>),
    /// A stream that also ends when its client may no longer read it.
    Guarded(Box<Guarded>),
}

/// Bytes of a whole body that the connection gets at a time.
const PART_BYTES: usize = 64 * 1024;
/// How often a stream checks whether its client may still read it.
const RECHECK_EVERY: Duration = Duration::from_secs(2);

/// A stream with its guard.
pub(crate) struct Guarded {
    lines: Receiver<Bytes>,
    recheck: Interval,
    is_allowed: Box<dyn Fn() -> bool + Send>,
}

impl AdminBody {
    /// Ends a stream when `is_allowed` says no, at most 2 s later. Other bodies stay as they are.
    pub(super) fn guarded(self, is_allowed: impl Fn() -> bool + Send + 'static) -> Self {
        let Self::Stream(lines) = self else { return self };
        let mut recheck = tokio::time::interval(RECHECK_EVERY);
        recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Guarded(Box::new(Guarded { lines, recheck, is_allowed: Box::new(is_allowed) }))
    }
}

impl Guarded {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.recheck.poll_tick(context).is_ready() {
            if !(self.is_allowed)() {
                return Poll::Ready(None);
            }
        }
        self.lines.poll_recv(context)
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
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => next_part(bytes),
            Self::Stream(lines) => ready!(lines.poll_recv(context)),
            Self::Guarded(guarded) => ready!(guarded.poll(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
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
        let mut body = AdminBody::Stream(received).guarded(move || asked.load(Ordering::Relaxed));
        let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        lines.send("1".into()).await.unwrap();
        assert!(next().await.is_some());
        is_allowed.store(false, Ordering::Relaxed);
        let began = tokio::time::Instant::now();
        assert!(next().await.is_none(), "no line comes, and it ends");
        assert!(began.elapsed() <= RECHECK_EVERY + Duration::from_millis(1));
    }
}
