//! A connection's bytes on their way to hyper and back. Heads are checked and held back until they are complete, so
//! that what must be refused is answered in full; a connection that ends before its request was read is
//! closed in a way that lets the peer read the answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::code::Code;
use crate::connection::{Connection, Order, Phase};
use crate::framing::{Framing, Rest};
use crate::problem::{Problem, Refused};
use crate::worker::Worker;

/// Bytes that are thrown away after the last answer: more than a peer's buffers hold, as a rule.
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The socket of a connection.
pub(crate) struct Socket {
    stream: TcpStream,
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    framing: Framing,
    /// The part of a head that is there.
    held: Vec<u8>,
    /// Bytes that were held, are sound, and wait for room in hyper's buffer.
    sound: Vec<u8>,
    /// Set when nothing more is read: the answer that is still to be written.
    last_words: Option<Vec<u8>>,
    /// What isn't taken stands behind a whole request, which must be answered before.
    is_between_requests: bool,
    discarded: usize,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, worker: Rc<Worker>, connection: Rc<Connection>) -> Self {
        let framing = Framing::default();
        let (held, sound) = (Vec::new(), Vec::new());
        let (last_words, is_between_requests) = (None, false);
        Self { stream, worker, connection, framing, held, sound, last_words, is_between_requests, discarded: 0 }
    }

    fn refuse(&mut self, refused: &Refused) {
        self.worker.cells().refused(refused.code);
        self.last_words = Some(refused.last_words());
        self.held = Vec::new();
        self.is_between_requests = matches!(self.framing, Framing::Head);
        self.connection.lingers.set(true);
    }

    /// Sorts out bytes that were just received, of which the first are given to hyper at once.
    fn take(&mut self, bytes: &[u8], buffer: &mut ReadBufCursor<'_>) {
        self.connection.received(bytes.len());
        if self.held.is_empty() {
            let (sound, rest) = self.framing.advance(bytes);
            buffer.put_slice(&bytes[..sound]);
            self.go_on(rest, &bytes[sound..]);
        } else {
            self.held.extend_from_slice(bytes);
            let held = std::mem::take(&mut self.held);
            let (sound, rest) = self.framing.advance(&held);
            self.sound.extend_from_slice(&held[..sound]);
            self.go_on(rest, &held[sound..]);
        }
    }

    fn go_on(&mut self, rest: Rest, bytes: &[u8]) {
        match rest {
            Rest::Nothing => {}
            Rest::PartOfHead => {
                self.held.extend_from_slice(bytes);
                if self.connection.phase() == Phase::Idle {
                    self.connection.enter(Phase::Head, self.worker.now());
                }
            }
            Rest::Refused(refused) => self.refuse(&refused),
        }
    }

    fn give(&mut self, buffer: &mut ReadBufCursor<'_>) {
        let length = self.sound.len().min(buffer.remaining());
        buffer.put_slice(&self.sound[..length]);
        self.sound.drain(..length);
        if self.sound.is_empty() {
            self.sound = Vec::new();
        }
    }

    fn is_too_slow(&self) -> bool {
        self.connection.order() == Order::TooSlow && !self.connection.has_request() && !self.held.is_empty()
    }

    fn poll_last_words(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(words) = self.last_words.as_mut().filter(|words| !words.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, words))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            words.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Throws away what still comes until the peer closes, or has sent enough of it.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.connection.phase() != Phase::Linger {
            self.connection.enter(Phase::Linger, self.worker.now());
        }
        while self.discarded < LINGER_BYTES_MAX {
            let mut scratch = self.worker.scratch();
            let mut read = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)) {
                Ok(()) if !read.filled().is_empty() => self.discarded += read.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let room = buffer.remaining();
        loop {
            if !this.sound.is_empty() {
                this.give(&mut buffer);
            }
            if buffer.remaining() < room {
                return Poll::Ready(Ok(()));
            }
            if this.is_too_slow() {
                this.refuse(&Problem::boxed(Code::Timeout, "the request's head took too long"));
            }
            if this.last_words.is_some() {
                // To hyper it looks as if the peer had closed. The request in flight, whose end wakes this task,
                // would be dropped by that.
                let wait = this.is_between_requests && this.connection.has_request();
                return if wait { Poll::Pending } else { Poll::Ready(Ok(())) };
            }
            let worker = this.worker.clone();
            let mut scratch = worker.scratch();
            let length = scratch.len().min(room);
            let mut read = ReadBuf::new(&mut scratch[..length]);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.take(read.filled(), &mut buffer);
        }
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_last_words(context))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        if self.connection.lingers.get() {
            ready!(self.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
