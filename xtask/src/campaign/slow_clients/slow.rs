//! One slow client: what it sends, and how long the server should tolerate it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::source::{self, Manner};
use crate::http::post;

/// The kind of slowness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its headers arrive byte by byte.
    Head,
    /// Its body does.
    Body,
    /// It takes no answer.
    Reader,
    /// It sends nothing.
    Idle,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Head, Self::Body, Self::Reader, Self::Idle];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Head => "slow headers",
            Self::Body => "slow bodies",
            Self::Reader => "slow readers",
            Self::Idle => "idle",
        }
    }

    /// How long the server tolerates it; it checks once a second.
    pub(super) const fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head | Self::Body => 10,
            Self::Reader => 30,
            Self::Idle => 75,
        })
    }

    fn begins_with(self) -> Vec<u8> {
        match self {
            Self::Head => b"POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nX: ".into(),
            Self::Body => b"POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n\"".into(),
            Self::Reader => post("/ingest/batch", &[], "{\n".repeat(REFUSED_LINES).as_bytes()).repeat(REQUESTS),
            Self::Idle => Vec::new(),
        }
    }
}

/// Lines of a batch that are all rejected: the answer is many times as long as the request. A client that reads no answers sends so many
/// requests: their answers exceed all buffers, and the server doesn't even read all requests, so its end is seen.
const REFUSED_LINES: usize = 50;
const REQUESTS: usize = 200;

/// A connection that is slow.
pub(super) struct Slow {
    pub(super) kind: Kind,
    pub(super) stream: TcpStream,
    /// From when its deadline counts.
    pub(super) since: Instant,
    answer: Vec<u8>,
}

/// The state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It is borne.
    Open,
    /// The server has closed; whether it answered 408 before.
    Cut { answered_408: bool },
}

impl Slow {
    pub(super) fn open(server: SocketAddr, number: u64, kind: Kind) -> io::Result<Self> {
        let manner = Manner { reads_little: kind == Kind::Reader, resets: false };
        let mut stream = source::open(server, number, manner)?;
        stream.write_all(&kind.begins_with())?;
        stream.set_nonblocking(true)?;
        Ok(Self { kind, stream, since: Instant::now(), answer: Vec::new() })
    }

    /// Sends as little as it does at a time. An error will be seen as an end.
    pub(super) fn drip(&mut self) {
        if matches!(self.kind, Kind::Head | Kind::Body) {
            let _ = self.stream.write(b"x");
        }
    }

    /// The server's answer to one that was cut too early: its last status line, and how the connection ended.
    pub(super) fn last_words(&mut self) -> String {
        let ended = match self.stream.read_to_end(&mut self.answer) {
            Ok(_) => "an end".to_owned(),
            Err(error) => error.to_string(),
        };
        let answer = String::from_utf8_lossy(&self.answer);
        let status = answer.lines().rfind(|line| line.starts_with("HTTP/1.1 ")).unwrap_or("no answer");
        format!("{status:?} in {} bytes, then {ended}", self.answer.len())
    }

    /// Handles an event of epoll.
    pub(super) fn look(&mut self, broken: bool) -> Seen {
        if self.kind == Kind::Reader {
            return if broken { Seen::Cut { answered_408: false } } else { Seen::Open };
        }
        let mut piece = [0; 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Seen::Cut { answered_408: self.answer.starts_with(b"HTTP/1.1 408 ") },
                Ok(length) => self.answer.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Seen::Open,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Seen::Cut { answered_408: self.answer.starts_with(b"HTTP/1.1 408 ") },
            }
        }
    }
}
