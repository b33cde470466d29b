//! A connection's bytes as they are read and written, with TLS under them or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use net::tls::SecureStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket, or TLS on one.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secure(Box<SecureStream>),
}

impl Stream {
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, into),
        }
    }

    /// Accepts bytes to send. Those that TLS buffers are sent with [`Self::poll_flush`] at the latest.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // A socket buffers nothing here.
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    pub(crate) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    /// The bytes that came over the network with a read that gave `bytes`: TLS gives nothing until a record is complete, but a client that
    /// sends a large one slowly does send.
    pub(crate) fn take_received(&mut self, bytes: usize) -> usize {
        match self {
            Self::Plain(_) => bytes,
            Self::Secure(stream) => stream.get_mut().0.take_received(),
        }
    }

    /// Whether the network accepted any of TLS's buffered bytes since the last call.
    pub(crate) fn take_progress(&mut self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Secure(stream) => stream.get_mut().0.take_sent() > 0,
        }
    }
}
