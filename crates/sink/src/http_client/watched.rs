//! A connection that says when something last came or went.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use crate::stream::Stream;

/// When something last came or went.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    /// Milliseconds since then.
    last: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), last: AtomicU64::new(0) })
    }

    /// Something has come or gone, or a wait begins.
    pub(super) fn touch(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Since when nothing has.
    pub(super) fn quiet_for(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }

    /// Since the connection began.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Ends when nothing has come or gone for so long.
    pub(super) async fn silence(&self, max: Duration) {
        while let Some(left) = max.checked_sub(self.quiet_for()).filter(|left| !left.is_zero()) {
            sleep(left).await;
        }
    }
}

/// The connection.
pub(super) struct Watched {
    pub(super) stream: Stream,
    pub(super) activity: Arc<Activity>,
}

impl Watched {
    fn noted<T>(&self, done: Poll<T>) -> Poll<T> {
        if done.is_ready() {
            self.activity.touch();
        }
        done
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.noted(done)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noted(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
