//! One connection: it sends a request and receives its answer, without blocking.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::epoll::EventFlags;

use super::answer;
use super::stream::{self, Wire};
use crate::ServerConnector;
use crate::poller::Poller;

/// At most so much of an answer is shown.
const WORDS_CHARACTERS_MAX: usize = 200;

/// A connection and the request on it.
pub(super) struct Client {
    wire: Wire,
    out: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    /// Whether epoll reports when it can be written to.
    watches_out: bool,
    /// The request that isn't answered.
    pub(super) flight: Option<Flight>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    /// When it should have been sent.
    pub(super) intended: Instant,
}

/// A whole answer was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) closes: bool,
}

impl Client {
    /// Connects, and registers the connection with epoll as `number`.
    pub(super) fn connect(server: &ServerConnector, poller: &Poller, number: u64) -> io::Result<Self> {
        let wire = stream::connect(server)?;
        poller.add(wire.socket().as_fd(), number, EventFlags::IN)?;
        let (out, received) = (Vec::new(), Vec::new());
        Ok(Self { wire, out, sent: 0, received, watches_out: false, flight: None })
    }

    /// Where the next request is built.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.sent = 0;
        &mut self.out
    }

    /// Sends what can be sent now.
    pub(super) fn send(&mut self, poller: &Poller, number: u64) -> io::Result<()> {
        loop {
            let left = &self.out[self.sent..];
            // TLS keeps the bytes that the socket doesn't accept.
            let sent = if left.is_empty() { self.wire.flush().map(|()| 0) } else { self.wire.write(left) };
            match sent {
                Ok(0) => return self.watch_out(poller, number, false),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.watch_out(poller, number, true),
                Err(error) => return Err(error),
            }
        }
    }

    fn watch_out(&mut self, poller: &Poller, number: u64, watches: bool) -> io::Result<()> {
        if self.watches_out != watches {
            let flags = if watches { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            poller.modify(self.wire.socket().as_fd(), number, flags)?;
            self.watches_out = watches;
        }
        Ok(())
    }

    /// Reads the received bytes. `scratch` is a buffer: nearly every answer arrives in one piece and is read there.
    /// The text of the first answer with each status but 200 is noted in `said`.
    pub(super) fn receive(
        &mut self,
        scratch: &mut [u8],
        said: &mut BTreeMap<u16, String>,
    ) -> io::Result<Option<Answered>> {
        let length = match self.wire.read(scratch) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(error) => return Err(error),
        };
        let new = &scratch[..length];
        let bytes = if self.received.is_empty() {
            new
        } else {
            self.received.extend_from_slice(new);
            &self.received
        };
        let Some(answer) = answer::parse(bytes).map_err(io::Error::other)? else {
            if self.received.is_empty() {
                self.received.extend_from_slice(new);
            }
            return Ok(None);
        };
        if answer.length != bytes.len() || self.flight.is_none() {
            return Err(io::Error::other(
                "the server sent more than one response to a request: check the proxies before the server",
            ));
        }
        if answer.status != 200 {
            said.entry(answer.status).or_insert_with(|| words(&answer.body));
        }
        let answered = Answered { status: answer.status, closes: answer.closes };
        self.received.clear();
        Ok(Some(answered))
    }
}

/// The readable part of an answer: the detail of a problem; of a batch that of its first rejection; else its text.
pub(crate) fn words(body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = [problem.pointer("/detail"), problem.pointer("/refused/0/detail")].into_iter().flatten();
    let text = detail.filter_map(serde_json::Value::as_str).next().map(str::to_owned);
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    text.chars().take(WORDS_CHARACTERS_MAX).map(|each| if each.is_control() { ' ' } else { each }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_shortened_to_their_detail() {
        assert_eq!(words(br#"{"code":"json","detail":"it\nis"}"#), "it is");
        assert_eq!(words(br#"{"accepted":1,"refused":[{"detail":"a"},{"detail":"b"}]}"#), "a");
        assert_eq!(words(b"<html>"), "<html>");
        assert_eq!(words("é".repeat(500).as_bytes()).chars().count(), WORDS_CHARACTERS_MAX);
    }
}
