//! A connection to a server. Whoever calls also drives it: there is no task of its own, and a call that is dropped takes
//! its connection with it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout};

use super::config::RedisConfig;
use super::failure::Failure;
use super::wire::{self, Answer, Command};
use crate::stream::{Place, Stream};

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for so long may have been forgotten by something on the way: another one is made.
const IDLE_MAX: Duration = Duration::from_mins(5);
/// A connection isn't used for longer, so that the server is looked at again, and a name's new address is found.
const LIFE_MAX: Duration = Duration::from_hours(1);
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 * 1024;

/// An open connection.
pub(super) struct Session {
    stream: Stream,
    received: Vec<u8>,
    limit: Duration,
    opened: Instant,
    used: Instant,
}

impl Session {
    /// Connects, and says who asks for which database.
    pub(super) async fn open(config: &RedisConfig) -> Result<Self, Failure> {
        let RedisConfig { server, ca, .. } = config;
        let place = Place { host: &server.host, port: server.port, is_secure: server.is_secure, ca: ca.as_deref() };
        let connecting = timeout(CONNECT_TIMEOUT, Stream::open(place));
        let stream = connecting.await.map_err(|_| Failure::Silent(CONNECT_TIMEOUT))??;
        let now = Instant::now();
        let mut session = Self { stream, received: Vec::new(), limit: config.timeout, opened: now, used: now };
        if let Some(password) = &server.password {
            let mut words = vec![&b"AUTH"[..]];
            words.extend(server.user.as_deref().map(str::as_bytes));
            words.push(password.as_bytes());
            session.call(Command::new(&words)).await?;
        }
        if server.database != 0 {
            session.call(Command::new(&[b"SELECT", server.database.to_string().as_bytes()])).await?;
        }
        Ok(session)
    }

    /// Sends a command and waits for its answer. A refusal is a failure.
    pub(super) async fn call(&mut self, command: Command) -> Result<Answer, Failure> {
        let command = command.into_bytes();
        let answer = timeout(self.limit, self.exchange(&command)).await;
        let answer = answer.map_err(|_| Failure::Silent(self.limit))??;
        self.used = Instant::now();
        match answer {
            Answer::Error(said) => Err(Failure::Server(said)),
            answer => Ok(answer),
        }
    }

    async fn exchange(&mut self, command: &[u8]) -> Result<Answer, Failure> {
        self.stream.write_all(command).await?;
        self.stream.flush().await?;
        loop {
            if let Some((answer, length)) = wire::answer(&self.received)? {
                self.received.drain(..length);
                return Ok(answer);
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(Failure::Connection(io::Error::other("the server closed the connection")));
            }
        }
    }

    /// Whether the connection is still good for a call.
    pub(super) async fn is_fresh(&mut self) -> bool {
        // Nothing is on its way: whatever comes now is the connection's end, or what nobody has asked for.
        let mut space = [0];
        let mut space = ReadBuf::new(&mut space);
        let stream = &mut self.stream;
        let silent = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut space).is_pending())).await;
        silent && self.received.is_empty() && self.used.elapsed() < IDLE_MAX && self.opened.elapsed() < LIFE_MAX
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}
