//! A connection to a server. The caller also drives it: there is no separate task, and a dropped call closes its
//! connection.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout};

use super::config::NatsConfig;
use super::credentials::Credentials;
use super::error::Failure;
use super::protocol::{self, Frame, Message};
use super::server::{Account, Host};
use net::stream::{MaybeTlsStream, ServerAddress};

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that was idle for this long isn't used again: the server's pings get no response in the meantime, and
/// it closes the connection after some minutes.
pub(super) const IDLE_MAX: Duration = Duration::from_mins(1);
/// A connection isn't used for longer, so the stream is checked again, and a name's new address is found.
const LIFE_MAX: Duration = Duration::from_hours(1);
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 * 1024;
/// The status of a response if there is no responder for a subject.
const NO_RESPONDERS: &str = "503";

/// A server's description of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Greeting {
    pub(super) version: String,
    /// The maximum of bytes of a message, including headers.
    pub(super) max_payload: usize,
    headers: bool,
    tls_required: bool,
    nonce: String,
}

/// The responses to a call.
pub(super) struct Answers {
    /// The first earlier response with a payload.
    pub(super) earlier: Option<Vec<u8>>,
    pub(super) last: Vec<u8>,
}

/// An open connection.
pub(super) struct Session {
    stream: MaybeTlsStream,
    received: Vec<u8>,
    greeting: Greeting,
    /// The prefix of response subjects.
    inbox: String,
    asked: u64,
    limit: Duration,
    opened: Instant,
    used: Instant,
}

impl Session {
    /// Connects to the first server that accepts the login.
    pub(super) async fn open(config: &NatsConfig) -> Result<Self, Failure> {
        let mut failure = Failure::Unexpected("no server is configured");
        for host in &config.servers.hosts {
            failure = match timeout(CONNECT_TIMEOUT, Self::open_at(config, host)).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::NoResponse(CONNECT_TIMEOUT),
            };
        }
        Err(failure)
    }

    async fn open_at(config: &NatsConfig, host: &Host) -> Result<Self, Failure> {
        let place = ServerAddress { host: &host.name, port: host.port, is_secure: false, ca: config.ca.as_deref() };
        let now = Instant::now();
        let mut session = Self {
            stream: MaybeTlsStream::open(place).await?,
            received: Vec::new(),
            greeting: Greeting::default(),
            inbox: format!("_INBOX.{:032x}", u128::from_ne_bytes(random()?)),
            asked: 0,
            limit: config.timeout,
            opened: now,
            used: now,
        };
        // The server sends its first line before TLS begins.
        let Frame::Info(info) = session.next().await? else { return Err(INVALID_GREETING) };
        session.greeting = serde_json::from_str(&info).map_err(|_| INVALID_GREETING)?;
        if config.servers.is_secure || session.greeting.tls_required {
            // Bytes that were received before TLS aren't trusted.
            session.received.clear();
            session.stream = session.stream.secure(place).await?;
        }
        session.log_in(config).await?;
        Ok(session)
    }

    /// Logs in, subscribes to responses, and waits for the server's confirmation.
    async fn log_in(&mut self, config: &NatsConfig) -> Result<(), Failure> {
        if !self.greeting.headers {
            return Err(Failure::Misfit("it rejects headers: enable them in the server's configuration".to_owned()));
        }
        let mut options = json!({
            "verbose": false, "pedantic": false, "echo": false, "headers": true, "no_responders": true, "protocol": 1,
            "lang": "rust", "name": "forebay", "version": env!("CARGO_PKG_VERSION"),
            "tls_required": config.servers.is_secure,
        });
        match &config.servers.account {
            Account::Anonymous => {}
            Account::Token(token) => options["auth_token"] = json!(token),
            Account::User { name, password } => (options["user"], options["pass"]) = (json!(name), json!(password)),
        }
        if let Some(path) = &config.credentials {
            let credentials = Credentials::read(path).map_err(Failure::Misfit)?;
            options["sig"] = json!(credentials.sign(&self.greeting.nonce));
            match credentials.jwt {
                Some(jwt) => options["jwt"] = json!(jwt),
                None => options["nkey"] = json!(credentials.public_key),
            }
        }
        let mut commands = Vec::new();
        protocol::command(&mut commands, &["CONNECT", &options.to_string()]);
        protocol::command(&mut commands, &["SUB", &format!("{}.*", self.inbox), "1"]);
        protocol::command(&mut commands, &["PING"]);
        self.send(&commands).await?;
        loop {
            match self.next().await? {
                Frame::Pong => return Ok(()),
                Frame::Error(said) => return Err(Failure::Server(said)),
                _ => {}
            }
        }
    }

    pub(super) const fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// A new subject for a response.
    pub(super) fn reply(&mut self) -> String {
        self.asked += 1;
        format!("{}.{}", self.inbox, self.asked)
    }

    /// Publishes to `subject` and waits for the response.
    pub(super) async fn request(&mut self, subject: &str, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        let reply = self.reply();
        let mut bytes = Vec::new();
        protocol::publish(&mut bytes, subject, Some(&reply), b"", payload);
        Ok(self.call(&bytes, &reply).await?.last)
    }

    /// Sends `bytes` and waits for the response to `reply`.
    pub(super) async fn call(&mut self, bytes: &[u8], reply: &str) -> Result<Answers, Failure> {
        let answers = timeout(self.limit, self.exchange(bytes, reply)).await;
        let answers = answers.map_err(|_| Failure::NoResponse(self.limit))?;
        self.used = Instant::now();
        answers
    }

    async fn exchange(&mut self, bytes: &[u8], reply: &str) -> Result<Answers, Failure> {
        self.send(bytes).await?;
        let mut earlier = None;
        loop {
            let message = self.answer().await?;
            if message.subject == reply {
                return Ok(Answers { earlier, last: message.payload });
            }
            // An empty response means no error so far.
            if !message.payload.is_empty() {
                earlier.get_or_insert(message.payload);
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).await?;
        Ok(self.stream.flush().await?)
    }

    /// The next message. It is a failure if there is no responder for the request.
    async fn answer(&mut self) -> Result<Message, Failure> {
        loop {
            match self.next().await? {
                Frame::Message(message) if message.status.starts_with(NO_RESPONDERS) => {
                    return Err(Failure::NoResponders);
                }
                Frame::Message(message) => return Ok(message),
                Frame::Error(said) => return Err(Failure::Server(said)),
                Frame::Info(_) | Frame::Ping | Frame::Pong => {}
            }
        }
    }

    /// The next frame. Pings are answered before it.
    async fn next(&mut self) -> Result<Frame, Failure> {
        loop {
            if let Some((frame, length)) = protocol::frame(&self.received)? {
                self.received.drain(..length);
                if frame == Frame::Ping {
                    self.send(b"PONG\r\n").await?;
                }
                return Ok(frame);
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(Failure::Connection(io::Error::other("the server closed the connection")));
            }
        }
    }

    /// Whether the connection is still good for a call. Frames since the last call are read, and answered.
    pub(super) async fn check_fresh(&mut self) -> bool {
        if self.used.elapsed() > IDLE_MAX || self.opened.elapsed() > LIFE_MAX {
            return false;
        }
        loop {
            let mut space = [0; READ_BYTES];
            let mut space = ReadBuf::new(&mut space);
            let stream = &mut self.stream;
            let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut space))).await;
            match read {
                Poll::Pending => break,
                Poll::Ready(Ok(())) if !space.filled().is_empty() => self.received.extend_from_slice(space.filled()),
                Poll::Ready(_) => return false,
            }
        }
        while let Ok(Some((frame, length))) = protocol::frame(&self.received) {
            self.received.drain(..length);
            let is_answered = match frame {
                Frame::Ping => within(self.limit, self.send(b"PONG\r\n")).await,
                Frame::Error(_) => false,
                Frame::Info(_) | Frame::Pong | Frame::Message(_) => true,
            };
            if !is_answered {
                return false;
            }
        }
        self.received.is_empty()
    }
}

const INVALID_GREETING: Failure = Failure::Unexpected(
    "the server's first line isn't that of NATS: check that `url` is the URL of \
     a NATS server",
);

async fn within(limit: Duration, work: impl Future<Output = Result<(), Failure>>) -> bool {
    matches!(timeout(limit, work).await, Ok(Ok(())))
}

/// Unpredictable bytes.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Connection(io::Error::other(error)))?;
    Ok(bytes)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}
