//! A connection to a server. The caller also drives it: there is no separate task, and a dropped call closes its
//! connection.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::error::Failure;
use super::protocol::{self, Answer, Command};
use super::server::RedisServerUrl;
use net::stream::{MaybeTlsStream, ServerAddress};

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for this long may have been dropped by a firewall: a new one is opened.
pub(super) const IDLE_MAX: Duration = Duration::from_mins(5);
/// A connection isn't used for longer, so the server is checked again, and a name's new address is found.
const LIFE_MAX: Duration = Duration::from_hours(1);
/// A response that took longer may come from a server that was frozen and has been replaced since.
const SLOW: Duration = Duration::from_secs(1);
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 * 1024;

/// An open connection.
pub(super) struct Session {
    address: Address,
    stream: MaybeTlsStream,
    received: Vec<u8>,
    limit: Duration,
    opened: Instant,
    used: Instant,
    /// When this server was last confirmed as the right one; `None` if never, or not since it was slow.
    trusted: Option<Instant>,
}

impl Session {
    /// Connects to `address` with the account and database of `server`. `limit` is the time limit of each response.
    pub(super) async fn open(
        address: &Address,
        server: &RedisServerUrl,
        ca: Option<&Path>,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let place = ServerAddress { host: &address.host, port: address.port, is_secure: server.is_secure, ca };
        let within = CONNECT_TIMEOUT.min(limit);
        let stream = timeout(within, MaybeTlsStream::open(place)).await.map_err(|_| Failure::NoResponse(within))??;
        let (now, address) = (Instant::now(), address.clone());
        let mut session = Self { address, stream, received: Vec::new(), limit, opened: now, used: now, trusted: None };
        if let Some(password) = &server.password {
            let mut words = vec!["AUTH"];
            words.extend(server.user.as_deref());
            words.push(password);
            session.call(Command::new(&words)).await?;
        }
        if server.database != 0 {
            session.call(Command::new(&["SELECT", &server.database.to_string()])).await?;
        }
        Ok(session)
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// Whether this server was confirmed as the right one within this time.
    pub(super) fn is_trusted(&self, max: Duration) -> bool {
        self.trusted.is_some_and(|trusted| trusted.elapsed() < max)
    }

    /// Confirms this server as the right one.
    pub(super) fn trust(&mut self) {
        self.trusted = Some(Instant::now());
    }

    /// Sends a command and waits for its response. An error response is a failure.
    pub(super) async fn call(&mut self, command: Command) -> Result<Answer, Failure> {
        self.send(&command.into_bytes()).await
    }

    /// The same with an encoded command.
    pub(super) async fn send(&mut self, command: &[u8]) -> Result<Answer, Failure> {
        let sent = Instant::now();
        let answer = timeout(self.limit, self.exchange(command)).await;
        let answer = answer.map_err(|_| Failure::NoResponse(self.limit))??;
        self.used = Instant::now();
        if self.used - sent > SLOW {
            self.trusted = None;
        }
        match answer {
            Answer::Error(said) => Err(Failure::Server(said)),
            answer => Ok(answer),
        }
    }

    async fn exchange(&mut self, command: &[u8]) -> Result<Answer, Failure> {
        self.stream.write_all(command).await?;
        self.stream.flush().await?;
        loop {
            if let Some((answer, length)) = protocol::answer(&self.received)? {
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
    pub(super) async fn check_fresh(&mut self) -> bool {
        // No response is pending: anything received now is the connection's end, or unexpected.
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
