//! A connection on which one request after the other is sent, each waiting for its answer.

use std::io::{self, Read, Write};

use super::answer::{self, Answer};
use super::stream::Wire;

const READ_BYTES: usize = 16 * 1024;
/// An answer lists at most a thousand refusals: far below.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A keep-alive connection.
pub(crate) struct Connection {
    wire: Wire,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) const fn over(wire: Wire) -> Self {
        Self { wire, received: Vec::new() }
    }

    /// Sends a request and waits for the answer. After an error nothing is known of the request, and the connection
    /// is of no use any more.
    pub(crate) fn exchange(&mut self, head: &[u8], body: &[u8]) -> io::Result<Answer<'_>> {
        let sent = self.wire.write_all(head).and_then(|()| self.wire.write_all(body)).and_then(|()| self.wire.flush());
        // A server that refuses a body answers before its end, and closes: the answer is worth more than the error.
        let length = match (self.receive(), sent) {
            (Ok(length), _) => length,
            (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(error),
        };
        answer::parse(&self.received[..length]).map_err(io::Error::other)?.ok_or_else(gone)
    }

    /// Reads until an answer is there, and says how long it is.
    fn receive(&mut self) -> io::Result<usize> {
        self.received.clear();
        let mut piece = [0; READ_BYTES];
        loop {
            match self.wire.read(&mut piece) {
                Ok(0) => return Err(gone()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if let Some(answer) = answer::parse(&self.received).map_err(io::Error::other)? {
                return Ok(answer.length);
            }
            if self.received.len() > ANSWER_BYTES_MAX {
                return Err(io::Error::other("the server's answer has no end"));
            }
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection without an answer")
}
