//! A connection's bytes. What is read goes through a buffer that all connections of a shard share; a connection keeps
//! only what nobody could take yet, so that one which waits costs next to nothing.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::worker::Worker;

use super::connection::{Connection, Phase};

/// Bytes that are thrown away after the last answer: more than a peer's buffers hold, as a rule.
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Room that a connection keeps for what couldn't be taken at once: as much as a small body needs.
const ROOM_KEPT_BYTES: usize = 1024;

/// The socket of a connection, and what was received of it but not taken.
pub(super) struct Socket {
    stream: TcpStream,
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    held: Vec<u8>,
    /// How much of `held` was taken.
    taken: usize,
}

impl Socket {
    pub(super) const fn new(stream: TcpStream, worker: Rc<Worker>, connection: Rc<Connection>) -> Self {
        Self { stream, worker, connection, held: Vec::new(), taken: 0 }
    }

    pub(super) const fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    pub(super) fn now(&self) -> u32 {
        self.worker.now()
    }

    /// What was received and not taken.
    pub(super) fn held(&self) -> &[u8] {
        &self.held[self.taken..]
    }

    /// Takes bytes of [`Self::held`].
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        debug_assert!(self.taken <= self.held.len(), "what is taken was held");
        if self.taken == self.held.len() {
            self.taken = 0;
            self.held.clear();
            self.held.shrink_to(ROOM_KEPT_BYTES);
        }
    }

    /// Reads once, and shows `take` all that is held then; it says how much of it it takes. `None` at the end of the
    /// stream.
    pub(super) fn poll_read<T>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> (usize, T),
    ) -> Poll<io::Result<Option<T>>> {
        let worker = self.worker.clone();
        let mut scratch = worker.scratch();
        let mut read = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        let received = read.filled();
        if received.is_empty() {
            return Poll::Ready(Ok(None));
        }
        self.connection.received(received.len());
        let (taken, result) = if self.held.is_empty() {
            let (taken, result) = take(received);
            self.held.extend_from_slice(&received[taken..]);
            (0, result)
        } else {
            self.held.extend_from_slice(received);
            take(self.held())
        };
        self.take(taken);
        Poll::Ready(Ok(Some(result)))
    }

    /// Writes what `render` makes. As a rule the kernel takes it in one go; what it doesn't take is kept until it does.
    pub(super) async fn write(&mut self, render: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut render = Some(render);
        let mut rest = Vec::new();
        poll_fn(|context| {
            if let Some(render) = render.take() {
                let worker = self.worker.clone();
                let mut answer = worker.answer();
                answer.clear();
                render(&mut answer);
                let written = match Pin::new(&mut self.stream).poll_write(context, &answer) {
                    Poll::Ready(result) => result?,
                    Poll::Pending => 0,
                };
                if written < answer.len() {
                    self.connection.enter(Phase::Write, self.now());
                    rest = answer[written..].to_vec();
                }
            }
            self.poll_write_rest(context, &mut rest)
        })
        .await
    }

    fn poll_write_rest(&mut self, context: &mut Context<'_>, rest: &mut Vec<u8>) -> Poll<io::Result<()>> {
        while !rest.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.drain(..written);
            self.connection.enter(Phase::Write, self.now());
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the connection. Where bytes may still come that nobody will read, they are thrown away until the peer
    /// closes, or has sent enough of them: a reset would make it lose the answer.
    pub(super) async fn close(mut self, lingers: bool) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        if !lingers {
            return Ok(());
        }
        self.connection.enter(Phase::Linger, self.now());
        self.held = Vec::new();
        self.taken = 0;
        let mut discarded = 0;
        while discarded < LINGER_BYTES_MAX {
            let read = poll_fn(|context| self.poll_read(context, |bytes| (bytes.len(), bytes.len())));
            match read.await? {
                Some(bytes) => discarded += bytes,
                None => break,
            }
        }
        Ok(())
    }
}
