//! A socket under TLS that counts its bytes, and limits those of a handshake.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that a client sends until the handshake is done: an honest one needs two to three thousand. It bounds what a
/// connection may hold before it is known who it is.
const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;
/// The largest record on the wire, with its header (RFC 5246 §6.2.3; RFC 8446 §5.2 has less). With TLS 1.3 the first one of a
/// request may arrive together with the end of the handshake, and is read as part of it until it is complete.
const RECORD_BYTES_MAX: usize = 5 + (1 << 14) + 2048;

/// A socket with its counts.
#[derive(Debug)]
pub struct Metered {
    stream: TcpStream,
    /// How many bytes may still arrive, while there is a limit.
    left: Option<usize>,
    received: usize,
    sent: usize,
}

impl Metered {
    /// A socket on which a handshake begins.
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self { stream, left: Some(HANDSHAKE_BYTES_MAX + RECORD_BYTES_MAX), received: 0, sent: 0 }
    }

    /// The handshake is done.
    pub(crate) const fn lift_limit(&mut self) {
        self.left = None;
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Bytes received since the last call.
    pub const fn take_received(&mut self) -> usize {
        std::mem::replace(&mut self.received, 0)
    }

    /// Bytes sent since the last call.
    pub const fn take_sent(&mut self) -> usize {
        std::mem::replace(&mut self.sent, 0)
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining().min(self.left.unwrap_or(usize::MAX));
        if room == 0 && buffer.remaining() > 0 {
            return Poll::Ready(Err(io::Error::other(
                "the client sent too many bytes before the end of the TLS handshake: check what connects to this \
                 port",
            )));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let length = part.filled().len();
        buffer.advance(length);
        self.received += length;
        self.left = self.left.map(|left| left - length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.sent += length;
        Poll::Ready(Ok(length))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
        self.sent += length;
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
