//! A connection's bytes. Reads go through a buffer that all connections of a shard share; a connection keeps only bytes that couldn't be
//! parsed yet, so a waiting one uses almost no memory.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use limits::DRAIN_BYTES_MAX;
use net::lingering_close::DrainPermit;
use tokio::io::ReadBuf;

use crate::connection::{ConnectionState, Order, Phase};
use crate::read_buffer::ReadBuffer;
use crate::stream::Stream;
use crate::transport::Transport;

/// Bytes that the buffer of a shard's answers keeps: a page that is read back takes more, for as long as it needs them.
const WRITE_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Bytes that are discarded after the last response if no body is in flight: usually more than a peer's buffers hold.
const LINGER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// After so many discarded bytes the task yields to the shard's other connections.
const DISCARDED_STRETCH_BYTES: u64 = 256 * 1024;

/// What the peer may still send when a connection is closed. It is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Nothing.
    Nothing,
    /// A little.
    Little,
    /// The body of a request whose response left before, or bytes that are no request.
    Body,
}

/// The socket of a connection, and the received bytes that aren't consumed yet.
pub(crate) struct Socket {
    stream: Stream,
    transport: Rc<Transport>,
    connection: Rc<ConnectionState>,
    held: ReadBuffer,
}

impl Socket {
    pub(crate) fn new(stream: Stream, transport: Rc<Transport>, connection: Rc<ConnectionState>) -> Self {
        Self { stream, transport, connection, held: ReadBuffer::default() }
    }

    pub(crate) fn connection(&self) -> &ConnectionState {
        &self.connection
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) fn now(&self) -> u32 {
        self.transport.now()
    }

    /// The received bytes that aren't consumed yet.
    pub(crate) fn held(&self) -> &[u8] {
        self.held.bytes()
    }

    /// Consumes bytes of [`Self::held`].
    pub(crate) fn take(&mut self, bytes: usize) {
        if let Some(buffer) = self.held.take(bytes) {
            self.transport.give_back(buffer);
        }
    }

    /// Reads once, `most` bytes at most, and shows `take` all held bytes; `take` returns how many it consumes. `None` at the end of the stream.
    pub(crate) fn poll_read<T>(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]) -> (usize, T),
    ) -> Poll<io::Result<Option<T>>> {
        let Self { stream, transport, connection, held } = self;
        let mut scratch = transport.scratch();
        let room = most.min(scratch.len());
        let mut read = ReadBuf::new(&mut scratch[..room]);
        let polled = stream.poll_read(context, &mut read);
        connection.received(stream.take_received(read.filled().len()));
        ready!(polled)?;
        let received = read.filled();
        if received.is_empty() {
            return Poll::Ready(Ok(None));
        }
        if held.is_empty() {
            let (taken, result) = take(received);
            held.add(&received[taken..], || transport.spare_buffer());
            return Poll::Ready(Ok(Some(result)));
        }
        held.add(received, || transport.spare_buffer());
        drop(scratch);
        let (taken, result) = take(self.held());
        self.take(taken);
        Poll::Ready(Ok(Some(result)))
    }

    /// Writes the output of `render`. Usually the kernel accepts all of it; the rest is kept until it does.
    pub(crate) async fn write(&mut self, render: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut render = Some(render);
        let mut rest = Vec::new();
        let mut written: usize = 0;
        poll_fn(|context| {
            if let Some(render) = render.take() {
                let mut buffer = self.transport.write_buffer();
                buffer.clear();
                render(&mut buffer);
                let taken = match self.stream.poll_write(context, &buffer) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => 0,
                };
                let is_large = buffer.capacity() > WRITE_BUFFER_BYTES_MAX;
                if taken == buffer.len() && self.stream.poll_flush(context)?.is_ready() {
                    if is_large {
                        *buffer = Vec::new();
                    }
                    return Poll::Ready(Ok(()));
                }
                self.connection.enter(Phase::Write, self.transport.now());
                if is_large {
                    (rest, written) = (std::mem::take(&mut *buffer), taken);
                } else {
                    rest = buffer[taken..].to_vec();
                }
            }
            let polled = self.poll_rest(context, &rest, &mut written);
            if self.stream.take_progress() {
                self.connection.enter(Phase::Write, self.transport.now());
            }
            polled
        })
        .await
    }

    /// Writes the rest that the kernel didn't accept.
    fn poll_rest(&mut self, context: &mut Context<'_>, rest: &[u8], written: &mut usize) -> Poll<io::Result<()>> {
        while *written < rest.len() {
            let taken = ready!(self.stream.poll_write(context, &rest[*written..]))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += taken;
            self.connection.enter(Phase::Write, self.transport.now());
        }
        self.stream.poll_flush(context)
    }

    /// Ends the connection: first the own direction, then, if bytes may still come, the other one when the peer closes or a limit is reached.
    /// With a reset the peer would lose the response.
    pub(crate) async fn close(mut self, unread: Unread) -> io::Result<()> {
        let (phase, bytes_max, permit) = match unread {
            Unread::Body => {
                (Phase::Drain, DRAIN_BYTES_MAX, self.transport.drains().permit(self.connection.peer.client))
            }
            Unread::Nothing | Unread::Little => (Phase::Linger, LINGER_BYTES_MAX, None),
        };
        let is_over = unread == Unread::Nothing || unread == Unread::Body && permit.is_none();
        // TLS sends a closing alert, which a peer that reads nothing could block.
        self.connection.enter(if is_over { Phase::Linger } else { phase }, self.now());
        poll_fn(|context| self.stream.poll_shutdown(context)).await?;
        if is_over { Ok(()) } else { self.discard(bytes_max, permit.as_ref()).await }
    }

    /// Discards what arrives until the peer closes, or has sent so much.
    async fn discard(&mut self, bytes_max: u64, permit: Option<&DrainPermit>) -> io::Result<()> {
        self.take(self.held().len());
        let (mut discarded, mut stretch) = (0, 0);
        while discarded < bytes_max {
            let read = poll_fn(|context| {
                // A server that stops doesn't wait for a rejected client.
                if self.connection.order() == Order::Finish && self.connection.phase() == Phase::Drain {
                    self.connection.enter(Phase::Linger, self.now());
                }
                self.poll_read(context, usize::MAX, |bytes| (bytes.len(), bytes.len()))
            });
            let Some(bytes) = read.await? else { break };
            if let Some(permit) = permit {
                permit.discarded(bytes);
            }
            discarded += bytes as u64;
            stretch += bytes as u64;
            if stretch >= DISCARDED_STRETCH_BYTES {
                stretch = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
