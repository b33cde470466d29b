//! One connection, as requests and subscriptions see it: its buffer of commands, and its waiting requests.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::bus_error::BusError;
use super::queue::Queue;
use super::slots::{Room, Slots, TOKEN_BYTES};
use crate::error::Error;
use crate::message::Message;
use crate::protocol;
use crate::wire::random;

/// Bytes of commands that wait for a slow server. One message alone may have more.
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// `_INBOX.`, 24 digits and a dot.
const INBOX_BYTES: usize = 32;
/// The id of the subscription to responses.
pub(super) const INBOX_ID: u64 = 1;

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Open,
    /// Another connection is used: it is closed when no request waits for a response.
    Draining,
    /// It is closed after its buffer was sent.
    Closing,
    Ended,
}

/// One connection.
pub(super) struct Link {
    /// The server's address, for messages.
    pub(super) server: String,
    /// The beginning of the subjects of responses.
    inbox: [u8; INBOX_BYTES],
    slots: RefCell<Slots>,
    output: RefCell<Vec<u8>>,
    /// Whether the server waits for a response to a ping. One responds to all that came since the last write.
    is_pinged: Cell<bool>,
    /// The task that reads and writes.
    driver: RefCell<Option<Waker>>,
    pub(super) stage: Cell<Stage>,
    /// Whether the server shuts down soon.
    pub(super) is_lame: Cell<bool>,
    /// Pings without a response.
    pub(super) pings: Cell<u32>,
    pub(super) max_payload: Cell<usize>,
    /// Notified at each pong, and when the server becomes lame or the connection ends.
    pub(super) changed: Notify,
}

impl Link {
    pub(super) fn new(server: String, max_payload: usize) -> Result<Self, Error> {
        let mut inbox = *b"_INBOX.------------------------.";
        for (pair, byte) in inbox[7..].chunks_exact_mut(2).zip(random::<12>()?) {
            pair.copy_from_slice(&[
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]);
        }
        let link = Self {
            server,
            inbox,
            slots: RefCell::default(),
            output: RefCell::default(),
            is_pinged: Cell::default(),
            driver: RefCell::default(),
            stage: Cell::new(Stage::Open),
            is_lame: Cell::new(false),
            pings: Cell::new(0),
            max_payload: Cell::new(max_payload),
            changed: Notify::new(),
        };
        link.command(&["SUB", &format!("{}*", link.inbox()), "1"]);
        Ok(link)
    }

    /// The beginning of the subjects of responses.
    pub(super) fn inbox(&self) -> &str {
        std::str::from_utf8(&self.inbox).unwrap_or_default()
    }

    /// Sends a request to a subject with this hash.
    pub(super) fn request(
        self: &Rc<Self>,
        subject: (&str, u64),
        headers: &[u8],
        payload: &[u8],
        room: Room,
    ) -> Result<Waiting, BusError> {
        let (number, token) = self.slots.borrow_mut().take(subject.1, room)?;
        let waiting = Waiting { link: Rc::clone(self), number };
        let mut reply = [0; INBOX_BYTES + TOKEN_BYTES];
        reply[..INBOX_BYTES].copy_from_slice(&self.inbox);
        reply[INBOX_BYTES..].copy_from_slice(&token);
        self.publish(subject.0.as_bytes(), &reply, headers, payload)?;
        Ok(waiting)
    }

    pub(super) fn publish(&self, subject: &[u8], reply: &[u8], headers: &[u8], payload: &[u8]) -> Result<(), BusError> {
        let block = if headers.is_empty() { 0 } else { protocol::length_of_headers(headers.len()) };
        let (size, max) = (block + payload.len(), self.max_payload.get());
        if size > max {
            return Err(BusError::TooLarge { max });
        }
        let mut output = self.output.borrow_mut();
        if !output.is_empty() && output.len() + size > OUTPUT_BYTES_MAX {
            return Err(BusError::Unavailable("the bus is slow: it doesn't accept messages in time"));
        }
        protocol::publish(&mut output, subject, reply, headers, payload);
        drop(output);
        self.wake();
        Ok(())
    }

    pub(super) fn subscribe(&self, queue: &Queue) {
        let (subject, id) = (queue.subject.as_str(), queue.id.to_string());
        match (&queue.group, self.stage.get()) {
            (Some(group), Stage::Open) => self.command(&["SUB", subject, group, &id]),
            (None, Stage::Open) => self.command(&["SUB", subject, &id]),
            _ => {}
        }
    }

    pub(super) fn unsubscribe(&self, queue: &Queue) {
        self.command(&["UNSUB", &queue.id.to_string()]);
    }

    pub(super) fn ping(&self) {
        self.pings.set(self.pings.get() + 1);
        self.command(&["PING"]);
    }

    pub(super) fn pong(&self) {
        self.is_pinged.set(true);
    }

    fn command(&self, words: &[&str]) {
        protocol::command(&mut self.output.borrow_mut(), words);
        self.wake();
    }

    /// Exchanges the buffer for an empty one.
    pub(super) fn take_output(&self, empty: &mut Vec<u8>) {
        if self.is_pinged.take() {
            protocol::command(&mut self.output.borrow_mut(), &["PONG"]);
        }
        std::mem::swap(&mut *self.output.borrow_mut(), empty);
    }

    /// Begins a stage, unless a later one has begun.
    pub(super) fn begin(&self, stage: Stage) {
        self.stage.set(stage.max(self.stage.get()));
        self.changed.notify_waiters();
        self.wake();
    }

    /// Wakes the task that reads and writes.
    fn wake(&self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    pub(super) fn set_driver(&self, driver: &Waker) {
        self.driver.replace(Some(driver.clone()));
    }

    /// Whether no request waits.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.borrow().is_empty()
    }

    /// Gives a response to its request, if it still waits.
    pub(super) fn answer(&self, message: Message) {
        let Some(number) = self.waiting(message.subject()) else { return };
        self.end(number, if message.is_no_responders() { Err(BusError::NoResponders) } else { Ok(message) });
    }

    /// Whether the response that comes on a subject is wanted. A request without room for it fails.
    pub(super) fn wants(&self, subject: &[u8], bytes: usize) -> bool {
        let Some(number) = self.waiting(subject) else { return false };
        let has_room = self.slots.borrow().has_room(number, bytes);
        if !has_room {
            self.end(number, Err(BusError::NoRoom { bytes }));
        }
        has_room
    }

    /// The request that waits for a response on a subject.
    fn waiting(&self, subject: &[u8]) -> Option<u32> {
        self.slots.borrow().waiting(subject.strip_prefix(&self.inbox)?)
    }

    fn end(&self, number: u32, answer: Result<Message, BusError>) {
        let waker = self.slots.borrow_mut().answer(number, answer);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Fails all waiting requests, or those to the subject with this hash.
    pub(super) fn fail(&self, subject: Option<u64>, error: &BusError) {
        let wakers = self.slots.borrow_mut().fail(subject, error);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stage.get() == Stage::Ended
    }

    /// Waits for a change after which `is_reached` is true.
    pub(super) async fn until(&self, is_reached: impl Fn(&Self) -> bool) {
        while !is_reached(self) {
            self.changed.notified().await;
        }
    }
}

/// A request that waits for its response.
pub(super) struct Waiting {
    link: Rc<Link>,
    number: u32,
}

impl Future for Waiting {
    type Output = Result<Message, BusError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.link.slots.borrow_mut().poll(self.number, cx)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let left = self.link.slots.borrow_mut().release(self.number);
        drop(left);
        if self.link.stage.get() == Stage::Draining {
            self.link.wake();
        }
    }
}
