//! Reads on after a response that left before the request was read.
//!
//! Many clients write the whole body before they read. If the server closed immediately, the kernel would answer the rest of the body with
//! a reset, and the client would lose the response. So the server ends its own direction only, and discards what still arrives.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use hyper::body::Body;
use limits::{DRAIN_BYTES_MAX, DRAIN_TIME_MAX, DRAINING_CONNECTIONS_MAX};
use metrics::Counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::connections::{ConnectionLimiter, ConnectionPermit};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;
/// After so many bytes the task yields to other connections.
const STRETCH_BYTES: u64 = 256 * 1024;

/// A body up to this is read to its end, even if its request is rejected.
const SMALL_BODY_BYTES: u64 = 64 * 1024;

/// Whether a rejection of a request with this body must have `Connection: close`: the rest of the body isn't read as a request, and a
/// client that reuses the connection would lose its next one.
#[must_use]
pub fn is_large(body: &impl Body) -> bool {
    body.size_hint().exact().is_none_or(|bytes| bytes > SMALL_BODY_BYTES)
}

/// Limits the connections of a process that are drained at a time: one client has at most half of them.
#[derive(Debug)]
pub struct DrainLimiter {
    places: ConnectionLimiter,
    is_ended: AtomicBool,
    discarded: Counter,
    refused: Counter,
}

/// The permit of a connection that is drained. It is released when this is dropped.
#[derive(Debug)]
pub struct DrainPermit {
    limiter: Arc<DrainLimiter>,
    _place: ConnectionPermit,
}

impl Default for DrainLimiter {
    fn default() -> Self {
        Self::new(DRAINING_CONNECTIONS_MAX)
    }
}

impl DrainLimiter {
    /// So many connections at a time.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            places: ConnectionLimiter::new(max, max.div_ceil(2)),
            is_ended: AtomicBool::new(false),
            discarded: Counter::default(),
            refused: Counter::default(),
        }
    }

    /// A permit for a client's connection. `None` if the number of draining connections, of all clients or of this one, is at its limit: close
    /// the connection immediately.
    #[must_use]
    pub fn permit(self: &Arc<Self>, client: IpAddr) -> Option<DrainPermit> {
        let place = self.places.try_free().and_then(|free| self.places.take(free, client));
        if place.is_none() {
            self.refused.add(1);
        }
        place.map(|place| DrainPermit { limiter: self.clone(), _place: place })
    }

    /// Closes streams immediately from now on; those that are being drained, when they are polled next. A server that stops waits for no
    /// client.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Connections that are being drained.
    #[must_use]
    pub fn draining(&self) -> usize {
        self.places.open()
    }

    /// Bytes that were discarded.
    #[must_use]
    pub fn discarded_bytes(&self) -> u64 {
        self.discarded.get()
    }

    /// Connections that were closed immediately, because as many as allowed were being drained.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }
}

impl DrainPermit {
    /// Counts bytes that were discarded.
    pub fn discarded(&self, bytes: usize) {
        self.limiter.discarded.add(bytes as u64);
    }
}

/// A stream whose shutdown ends the own direction, and then reads on until the peer closes, or a limit is reached.
#[derive(Debug)]
pub struct Lingering<S> {
    stream: S,
    limiter: Arc<DrainLimiter>,
    client: IpAddr,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    Draining(Box<Drain>),
    Closed,
}

#[derive(Debug)]
struct Drain {
    permit: DrainPermit,
    deadline: Pin<Box<Sleep>>,
    left: u64,
    buffer: [u8; READ_BYTES],
}

impl<S> Lingering<S> {
    /// A client's stream that lingers if `limiter` has room for it then.
    pub const fn new(stream: S, limiter: Arc<DrainLimiter>, client: IpAddr) -> Self {
        Self { stream, limiter, client, state: State::Open }
    }
}

impl Drain {
    fn begin(limiter: &Arc<DrainLimiter>, client: IpAddr) -> State {
        limiter.permit(client).map_or(State::Closed, |permit| {
            let deadline = Box::pin(sleep(DRAIN_TIME_MAX));
            State::Draining(Box::new(Self { permit, deadline, left: DRAIN_BYTES_MAX, buffer: [0; READ_BYTES] }))
        })
    }

    /// Discards what arrives; ready if the connection is to be closed.
    fn poll(&mut self, stream: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<()> {
        if self.permit.limiter.is_ended() || self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut stretch = 0;
        while self.left > 0 {
            let mut read = ReadBuf::new(&mut self.buffer);
            let polled = ready!(Pin::new(&mut *stream).poll_read(context, &mut read));
            let bytes = read.filled().len();
            if polled.is_err() || bytes == 0 {
                return Poll::Ready(());
            }
            self.permit.discarded(bytes);
            self.left = self.left.saturating_sub(bytes as u64);
            stretch += bytes as u64;
            if stretch >= STRETCH_BYTES {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, limiter, client, state } = &mut *self;
        if matches!(state, State::Open) {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
            // Usually the peer has closed before.
            let mut first = [0; 512];
            let mut read = ReadBuf::new(&mut first);
            let polled = Pin::new(&mut *stream).poll_read(context, &mut read);
            let has_ended = polled.is_ready() && read.filled().is_empty();
            *state = if has_ended || limiter.is_ended() { State::Closed } else { Drain::begin(limiter, *client) };
        }
        if let State::Draining(drain) = state {
            ready!(drain.poll(stream, context));
            *state = State::Closed;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn limiter(max: usize) -> Arc<DrainLimiter> {
        Arc::new(DrainLimiter::new(max))
    }

    #[tokio::test]
    async fn peer_that_writes_first_gets_the_response() {
        let limiter = limiter(1);
        let (near, mut far) = duplex(1024);
        let mut near = Lingering::new(near, limiter.clone(), CLIENT);
        near.write_all(b"response").await.unwrap();
        let closing = tokio::spawn(async move { near.shutdown().await });
        far.write_all(&[0; 1_000_000]).await.unwrap();
        assert_eq!(limiter.draining(), 1);
        let mut response = Vec::new();
        far.read_to_end(&mut response).await.unwrap();
        assert_eq!(response, b"response");
        drop(far);
        closing.await.unwrap().unwrap();
        assert_eq!((limiter.draining(), limiter.refused()), (0, 0));
        assert!(limiter.discarded_bytes() > 990_000, "{}", limiter.discarded_bytes());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_peer_is_closed_after_timeout() {
        let (near, far) = duplex(1024);
        let begun = Instant::now();
        Lingering::new(near, limiter(1), CLIENT).shutdown().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), DRAIN_TIME_MAX.as_secs());
        drop(far);
    }

    #[tokio::test]
    async fn endless_peer_is_closed_after_byte_limit() {
        let limiter = limiter(1);
        let (near, mut far) = duplex(1 << 20);
        let mut near = Lingering::new(near, limiter.clone(), CLIENT);
        let closing = tokio::spawn(async move { near.shutdown().await });
        let piece = vec![0; 1 << 20];
        while far.write_all(&piece).await.is_ok() {}
        closing.await.unwrap().unwrap();
        let discarded = limiter.discarded_bytes();
        assert!((DRAIN_BYTES_MAX..DRAIN_BYTES_MAX + (1 << 20)).contains(&discarded), "{discarded}");
    }

    #[tokio::test]
    async fn closed_peer_needs_no_drain_permit() {
        let limiter = limiter(0);
        let (near, far) = duplex(1024);
        drop(far);
        Lingering::new(near, limiter.clone(), CLIENT).shutdown().await.unwrap();
        assert_eq!(limiter.refused(), 0);
    }

    #[tokio::test]
    async fn drains_beyond_the_limit_close_immediately() {
        let limiter = limiter(1);
        let held = limiter.permit(CLIENT).unwrap();
        let (near, mut far) = duplex(1024);
        far.write_all(b"body").await.unwrap();
        Lingering::new(near, limiter.clone(), CLIENT).shutdown().await.unwrap();
        assert_eq!((limiter.refused(), limiter.discarded_bytes()), (1, 0));
        drop(held);
        assert_eq!(limiter.draining(), 0);
    }

    #[test]
    fn client_drains_at_most_half_of_all() {
        let limiter = limiter(4);
        let of = |last| limiter.permit([10, 0, 0, last].into());
        let first = [of(1), of(1), of(1)];
        assert_eq!(first.each_ref().map(Option::is_some), [true, true, false], "a client has its share");
        let others = [of(2), of(2)];
        assert!(others.iter().all(Option::is_some), "the rest is for others");
        assert_eq!((limiter.draining(), limiter.refused()), (4, 1));
        assert!(of(3).is_none());
        drop(first);
        assert_eq!(limiter.draining(), 2);
        assert!(of(3).is_some());
    }
}
