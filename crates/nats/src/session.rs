//! A connection with one call at a time. The caller also drives it: there is no separate task, and a dropped call closes
//! its connection.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout};

use crate::connect_options::ConnectOptions;
use crate::error::Error;
use crate::greeting::Greeting;
use crate::message::Message;
use crate::protocol::{self, Frame};
use crate::server::Host;
use crate::wire::{CONNECT_TIMEOUT, Wire, random};

/// A connection isn't used for longer, so the stream is checked again, and a name's new address is found.
const LIFE_MAX: Duration = Duration::from_hours(1);
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 * 1024;

/// The responses to a call.
#[derive(Debug)]
pub struct Answers {
    /// The first earlier response with a payload.
    pub earlier: Option<Vec<u8>>,
    /// The response to the call's last message.
    pub last: Vec<u8>,
}

/// An open connection.
pub struct Session {
    wire: Wire,
    greeting: Greeting,
    /// The prefix of response subjects.
    inbox: String,
    asked: u64,
    limit: Duration,
    opened: Instant,
    used: Instant,
}

impl Session {
    /// A connection that was idle for this long isn't used again: the server's pings get no response in the meantime,
    /// and it closes the connection after some minutes.
    pub const IDLE_MAX: Duration = Duration::from_mins(1);

    /// Connects to the first server that accepts the login. `limit` is the time limit of a response.
    ///
    /// # Errors
    /// The last server's, if none accepts it.
    pub async fn open(options: &ConnectOptions, limit: Duration) -> Result<Self, Error> {
        let mut failure = Error::Unexpected("no server is configured");
        for host in &options.servers.hosts {
            failure = match timeout(CONNECT_TIMEOUT, Self::open_at(options, host, limit)).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(failure)) => failure,
                Err(_) => Error::NoResponse(CONNECT_TIMEOUT),
            };
        }
        Err(failure)
    }

    async fn open_at(options: &ConnectOptions, host: &Host, limit: Duration) -> Result<Self, Error> {
        let inbox = format!("_INBOX.{:032x}", u128::from_ne_bytes(random()?));
        let opened = Instant::now();
        let subscribe = format!("SUB {inbox}.* 1\r\n");
        let (wire, greeting) = Wire::open(options, (&host.name, host.port), None, subscribe.as_bytes()).await?;
        Ok(Self { wire, greeting, inbox, asked: 0, limit, opened, used: opened })
    }

    /// The server's description of itself.
    #[must_use]
    pub const fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// A new subject for a response.
    pub fn reply(&mut self) -> String {
        self.asked += 1;
        format!("{}.{}", self.inbox, self.asked)
    }

    /// Publishes to `subject` and waits for the response.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn request(&mut self, subject: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let reply = self.reply();
        let mut bytes = Vec::new();
        protocol::publish(&mut bytes, subject.as_bytes(), reply.as_bytes(), b"", payload);
        Ok(self.call(&bytes, &reply).await?.last)
    }

    /// Sends `bytes` and waits for the response to `reply`.
    ///
    /// # Errors
    /// The connection or the server fails, there is no responder, or the time limit is over.
    pub async fn call(&mut self, bytes: &[u8], reply: &str) -> Result<Answers, Error> {
        let answers = timeout(self.limit, self.exchange(bytes, reply)).await;
        let answers = answers.map_err(|_| Error::NoResponse(self.limit))?;
        self.used = Instant::now();
        answers
    }

    async fn exchange(&mut self, bytes: &[u8], reply: &str) -> Result<Answers, Error> {
        self.wire.send(bytes).await?;
        let mut earlier = None;
        loop {
            let message = self.answer().await?;
            if message.subject() == reply.as_bytes() {
                return Ok(Answers { earlier, last: message.payload().to_vec() });
            }
            // An empty response means no error so far.
            if !message.payload().is_empty() {
                earlier.get_or_insert(message.payload().to_vec());
            }
        }
    }

    /// The next message. It is a failure if there is no responder for the request.
    async fn answer(&mut self) -> Result<Message, Error> {
        loop {
            match self.wire.next().await? {
                Frame::Message(message) if message.is_no_responders() => return Err(Error::NoResponders),
                Frame::Message(message) => return Ok(message),
                Frame::Error(said) => return Err(Error::Server(said)),
                Frame::Info(_) | Frame::Ping | Frame::Pong => {}
            }
        }
    }

    /// Whether the connection is still good for a call. Frames since the last call are read, and answered.
    pub async fn check_fresh(&mut self) -> bool {
        if self.used.elapsed() > Self::IDLE_MAX || self.opened.elapsed() > LIFE_MAX {
            return false;
        }
        loop {
            let mut space = [0; READ_BYTES];
            let mut space = ReadBuf::new(&mut space);
            let stream = &mut self.wire.stream;
            let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut space))).await;
            match read {
                Poll::Pending => break,
                Poll::Ready(Ok(())) if !space.filled().is_empty() => {
                    self.wire.received.extend_from_slice(space.filled());
                }
                Poll::Ready(_) => return false,
            }
        }
        while let Ok(Some((frame, length))) = protocol::frame(&self.wire.received) {
            self.wire.received.drain(..length);
            let is_answered = match frame {
                Frame::Ping => within(self.limit, self.wire.send(b"PONG\r\n")).await,
                Frame::Error(_) => false,
                Frame::Info(_) | Frame::Pong | Frame::Message(_) => true,
            };
            if !is_answered {
                return false;
            }
        }
        self.wire.received.is_empty()
    }
}

async fn within(limit: Duration, work: impl Future<Output = Result<(), Error>>) -> bool {
    matches!(timeout(limit, work).await, Ok(Ok(())))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}
