//! The task of a connection: reads frames, writes the buffer of commands, and notices a server that doesn't respond.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BufMut;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::bus_error::BusError;
use super::link::{INBOX_ID, Link, Stage};
use super::queue::MESSAGES_MAX;
use super::shared::Shared;
use crate::error::Error;
use crate::greeting::Greeting;
use crate::protocol::{self, Frame};
use crate::wire::Wire;

/// A server that sent nothing for this long gets a ping, and has as long to respond.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A server that sends something else may respond to a ping after so many intervals: its messages come first.
const PING_INTERVALS_MAX: u32 = 6;
/// Bytes of a read: at least, and at most.
const READ_BYTES: usize = 64 * 1024;
const READ_BYTES_MAX: usize = 256 * 1024;
/// A response that is longer is skipped if there is no room for it.
const SKIPPED_BYTES_MIN: usize = READ_BYTES;
/// Reads before other tasks run: they receive their messages before more are read.
const READS_MAX: usize = 4;
/// Frames before other tasks run. With as many for each read, no queue of an owner that runs is too small.
const FRAMES_MAX: usize = MESSAGES_MAX / READS_MAX;
/// A larger buffer is freed after its use.
const BUFFER_KEPT_MAX: usize = 1024 * 1024;

/// Reads and writes until the connection ends.
pub(super) async fn drive(wire: Wire, link: Rc<Link>, shared: Rc<Shared>) {
    let mut ticks = interval(PING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (sending, said) = (Vec::new(), None);
    let mut driver = Driver { wire, link, shared, sending, sent: 0, ticks, skipped: 0, is_heard: true, late: 0, said };
    let outcome = poll_fn(|cx| driver.poll(cx)).await.map_err(|error| driver.said.take().map_or(error, Error::Server));
    driver.shared.ended(&driver.link, outcome);
}

struct Driver {
    wire: Wire,
    link: Rc<Link>,
    shared: Rc<Shared>,
    /// The buffer that is being written, and how much of it was.
    sending: Vec<u8>,
    sent: usize,
    ticks: Interval,
    /// Bytes that are left of a response that nothing has room for.
    skipped: usize,
    /// Whether the server sent anything since the last tick.
    is_heard: bool,
    /// Ticks since the oldest ping without a response.
    late: u32,
    /// The server's last error: the reason if it closes the connection.
    said: Option<String>,
}

impl Driver {
    /// Ready if the connection has ended: without an error if this side has closed it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.link.set_driver(cx.waker());
        self.read(cx)?;
        while self.ticks.poll_tick(cx).is_ready() {
            self.check_alive()?;
        }
        if self.link.stage.get() == Stage::Draining && self.link.pings.get() == 0 && self.link.is_idle() {
            self.link.begin(Stage::Closing);
        }
        ready!(self.write(cx))?;
        if self.link.stage.get() == Stage::Closing {
            return Pin::new(&mut self.wire.stream).poll_shutdown(cx).map_err(Error::Connection);
        }
        Poll::Pending
    }

    /// Parses what was read before, also by the login, and reads more.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        for _ in 0..READS_MAX {
            if self.parse()? == FRAMES_MAX {
                break;
            }
            self.wire.received.reserve(READ_BYTES);
            let mut space = (&mut self.wire.received).limit(READ_BYTES_MAX);
            match pin!(self.wire.stream.read_buf(&mut space)).poll(cx)? {
                Poll::Pending => return Ok(()),
                Poll::Ready(0) => return Err(io::Error::other("the server closed the connection").into()),
                Poll::Ready(_) => self.is_heard = true,
            }
        }
        // Unlike `wake_by_ref`, this lets all others run before.
        let _ = pin!(yield_now()).poll(cx);
        Ok(())
    }

    /// Returns the number of frames.
    fn parse(&mut self) -> Result<usize, Error> {
        let mut at = self.skipped.min(self.wire.received.len());
        self.skipped -= at;
        let mut count = 0;
        while count < FRAMES_MAX
            && let Some((frame, length)) = protocol::frame(&self.wire.received[at..])?
        {
            at += length;
            count += 1;
            self.take(frame)?;
        }
        if let Some(begun) = protocol::begun(&self.wire.received[at..])
            && begun.subscription == INBOX_ID
            && begun.length > SKIPPED_BYTES_MIN
            && !self.link.wants(begun.subject, begun.length)
        {
            let here = begun.length.min(self.wire.received.len() - at);
            self.skipped = begun.length - here;
            at += here;
        }
        self.wire.received.drain(..at);
        if self.wire.received.is_empty() && self.wire.received.capacity() > BUFFER_KEPT_MAX {
            self.wire.received = Vec::new();
        }
        Ok(count)
    }

    fn take(&mut self, frame: Frame) -> Result<(), Error> {
        match frame {
            Frame::Message(message) if message.subscription == INBOX_ID => self.link.answer(message),
            Frame::Message(message) => self.shared.deliver(message),
            Frame::Ping => self.link.pong(),
            Frame::Pong => {
                self.late = 0;
                self.link.pings.set(self.link.pings.get().saturating_sub(1));
                self.link.changed.notify_waiters();
            }
            Frame::Info(json) => self.learn(&Greeting::parse(&json)?),
            Frame::Error(said) => return self.rejected(said),
        }
        Ok(())
    }

    fn learn(&self, greeting: &Greeting) {
        self.link.max_payload.set(greeting.max_payload);
        self.shared.learn(greeting);
        if greeting.ldm {
            self.link.is_lame.set(true);
            self.link.changed.notify_waiters();
        }
    }

    /// An error about one subject leaves the connection open. After others the server closes it.
    fn rejected(&mut self, said: String) -> Result<(), Error> {
        self.shared.report(&format!("{} rejects a command: {said}", self.link.server));
        if let Some(subject) = quoted(&said, "Permissions Violation for Publish to ") {
            let hash = self.shared.hash(subject);
            self.link.fail(Some(hash), &BusError::Forbidden(said));
        } else if quoted(&said, "Permissions Violation for Subscription to ")
            .is_some_and(|subject| subject.starts_with(self.link.inbox()))
        {
            // Without responses the connection is of no use.
            return Err(Error::Server(said));
        } else {
            self.said = Some(said);
        }
        Ok(())
    }

    fn check_alive(&mut self) -> Result<(), Error> {
        if self.late >= if self.is_heard { PING_INTERVALS_MAX } else { 1 } {
            return Err(Error::NoResponse(PING_INTERVAL * self.late));
        }
        if !self.is_heard && self.link.pings.get() == 0 {
            self.link.ping();
        }
        self.late = if self.link.pings.get() > 0 { self.late + 1 } else { 0 };
        self.is_heard = false;
        self.said = None;
        Ok(())
    }

    /// Ready if everything is written.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            if self.sent == self.sending.len() {
                self.sent = 0;
                self.sending.clear();
                self.sending.shrink_to(BUFFER_KEPT_MAX);
                self.link.take_output(&mut self.sending);
                if self.sending.is_empty() {
                    return Pin::new(&mut self.wire.stream).poll_flush(cx).map_err(Error::Connection);
                }
            }
            let stream = Pin::new(&mut self.wire.stream);
            match ready!(stream.poll_write(cx, &self.sending[self.sent..]))? {
                0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into())),
                written => self.sent += written,
            }
        }
    }
}

/// The subject in quotation marks after `beginning`.
fn quoted<'a>(said: &'a str, beginning: &str) -> Option<&'a str> {
    said.strip_prefix(beginning)?.strip_prefix('"')?.split('"').next()
}
