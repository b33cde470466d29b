//! A connection that measures its own progress: when bytes were last sent, how slowly the server reads them, and how many arrived before a
//! response's head. Every HTTP connection of every sink goes through here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use super::pace::Pace;
use crate::stream::MaybeTlsStream;

/// Bytes that a server may send up to the end of a response's head. Interim responses (1xx) count: their number has no other bound.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// No head is expected.
const NO_HEAD: u64 = u64::MAX;

/// The time of a connection's last progress, and how much its server may still send before the response.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Milliseconds from `begun` to the last progress.
    last: AtomicU64,
    /// Bytes that may still arrive up to the end of the head, or [`NO_HEAD`].
    head_room: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), last: AtomicU64::new(0), head_room: AtomicU64::new(NO_HEAD) })
    }

    /// Notes progress: the client has sent bytes, or begins to wait. Received bytes aren't progress, so no interim response and no slow head
    /// extends a deadline.
    pub(super) fn touch(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// The time since the last progress.
    pub(super) fn quiet_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }

    /// The age of the connection.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Ends when there was no progress for so long.
    pub(super) async fn silence(&self, max: Duration) {
        while let Some(left) = max.checked_sub(self.quiet_for()).filter(|left| !left.is_zero()) {
            sleep(left).await;
        }
    }

    /// A response's head is expected from now on.
    pub(super) fn begin_head(&self) {
        self.head_room.store(HEAD_BYTES_MAX, Ordering::Relaxed);
    }

    /// The head is complete.
    pub(super) fn end_head(&self) {
        self.head_room.store(NO_HEAD, Ordering::Relaxed);
    }

    fn has_room(&self) -> bool {
        self.head_room.load(Ordering::Relaxed) > 0
    }

    fn received(&self, bytes: usize) {
        let room = self.head_room.load(Ordering::Relaxed);
        if room != NO_HEAD {
            self.head_room.store(room.saturating_sub(bytes as u64), Ordering::Relaxed);
        }
    }
}

/// The connection.
pub(super) struct IdleTimeoutStream {
    stream: MaybeTlsStream,
    activity: Arc<Activity>,
    /// Since when the server reads nothing of the bytes to send.
    blocked_since: Option<Instant>,
    pace: Pace,
}

impl IdleTimeoutStream {
    pub(super) fn new(stream: MaybeTlsStream, activity: Arc<Activity>, silence_max: Duration) -> Self {
        Self { stream, activity, blocked_since: None, pace: Pace::new(silence_max) }
    }
}

impl AsyncRead for IdleTimeoutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.activity.has_room() {
            let why = format!(
                "the server sent more than {HEAD_BYTES_MAX} bytes and no final response: check that the URL names an \
                 HTTP server"
            );
            return Poll::Ready(Err(io::Error::other(why)));
        }
        let before = buf.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.activity.received(buf.filled().len() - before);
        done
    }
}

impl AsyncWrite for IdleTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        match &done {
            Poll::Pending => {
                self.blocked_since.get_or_insert_with(Instant::now);
            }
            Poll::Ready(Ok(count)) => {
                let waited = self.blocked_since.take().map_or(Duration::ZERO, |since| since.elapsed());
                self.activity.touch();
                if !self.pace.keeps_up(waited, *count) {
                    let why = "the server reads the request too slowly: check the server and the network";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
                }
            }
            Poll::Ready(Err(_)) => {}
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
