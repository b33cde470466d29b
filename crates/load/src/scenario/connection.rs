//! The connection of a user: one request at a time, without blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::event::epoll::EventFlags;

use super::reading::Reading;
use crate::ServerConnector;
use crate::bench::stream::{self, Wire};
use crate::poller::Poller;

/// An open connection, or one that is being opened.
pub(super) struct Connection {
    wire: Wire,
    sent: usize,
    reading: Reading,
    /// Whether a request was answered on it.
    is_reused: bool,
}

impl Connection {
    /// Begins to connect, and registers the connection with the poller as `number`.
    pub(super) fn open(
        server: &ServerConnector,
        address: SocketAddr,
        (poller, number): (&Poller, usize),
    ) -> io::Result<Self> {
        let wire = stream::begin(server, address)?;
        // Edge-triggered: each event is followed by writing and reading all that can be.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        poller.add(wire.socket().as_fd(), number as u64, flags)?;
        Ok(Self { wire, sent: 0, reading: Reading::default(), is_reused: false })
    }

    /// Prepares for the next request.
    pub(super) fn reuse(&mut self) {
        (self.sent, self.reading) = (0, Reading::default());
    }

    /// Whether a failed request met a connection that the server has closed because it was idle.
    pub(super) const fn was_idle(&self) -> bool {
        self.is_reused && !self.reading.has_begun
    }

    /// Sends the rest of the request and reads what has arrived. Returns the answer when it is complete.
    pub(super) fn advance(&mut self, request: &[u8], scratch: &mut [u8]) -> io::Result<Option<Reading>> {
        self.send(request)?;
        loop {
            let length = match self.wire.read(scratch) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            // With TLS, the bytes of the handshake may have left space for the request.
            self.send(request)?;
            if self.reading.feed(&scratch[..length]).map_err(io::Error::other)? {
                self.is_reused = true;
                return Ok(Some(std::mem::take(&mut self.reading)));
            }
        }
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        loop {
            let left = &request[self.sent.min(request.len())..];
            // TLS keeps the bytes that the socket doesn't accept.
            let sent = if left.is_empty() { self.wire.flush().map(|()| 0) } else { self.wire.write(left) };
            match sent {
                Ok(0) => return Ok(()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}
