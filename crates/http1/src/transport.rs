//! The shared state of a shard's connections: buffers, the date, the count of ticks, the idle timeout, and the TLS configuration.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use limits::HEADER_BYTES_MAX;
use net::lingering_close::DrainLimiter;
use net::tls::ServerTls;

use crate::target::Scheme;

/// Bytes of one read from a socket.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that one step of decoding gives.
const DECODED_BYTES: usize = 64 * 1024;
/// Buffers that are kept for the next connection that needs one, and their maximum size: it may need one for a long time.
const SPARE_BUFFERS_MAX: usize = 16;
const SPARE_BUFFER_BYTES_MAX: usize = 4096;

const _: () = assert!(HEADER_BYTES_MAX <= READ_BYTES, "a head fits one read");

/// What the connections of a shard share. A buffer is never held over an await.
pub struct Transport {
    scratch: RefCell<Box<[u8]>>,
    write_buffer: RefCell<Vec<u8>>,
    decoded: RefCell<Vec<u8>>,
    spare_buffers: RefCell<Vec<Vec<u8>>>,
    /// The value of `Date`.
    date: RefCell<String>,
    ticks: Cell<u32>,
    tls: Option<Arc<ServerTls>>,
    drains: Arc<DrainLimiter>,
    /// How long a connection may be idle, in ticks.
    idle_ticks: Cell<u32>,
    /// The header lines of a response to a client that asks whether its connection is kept.
    kept_alive: RefCell<String>,
    /// Whether the shard ends.
    is_ending: Rc<Cell<bool>>,
}

impl Transport {
    /// `is_ending` is set when the shard ends.
    #[must_use]
    pub fn new(tls: Option<Arc<ServerTls>>, drains: Arc<DrainLimiter>, is_ending: Rc<Cell<bool>>) -> Self {
        Self {
            scratch: RefCell::new(vec![0; READ_BYTES].into()),
            write_buffer: RefCell::default(),
            decoded: RefCell::default(),
            spare_buffers: RefCell::default(),
            date: RefCell::new(http_date()),
            ticks: Cell::default(),
            tls,
            drains,
            idle_ticks: Cell::default(),
            kept_alive: RefCell::default(),
            is_ending,
        }
    }

    /// Another tick has passed.
    pub fn tick(&self) {
        self.ticks.set(self.now().saturating_add(1));
        *self.date.borrow_mut() = http_date();
    }

    /// Ticks since the start.
    pub fn now(&self) -> u32 {
        self.ticks.get()
    }

    /// Changes how long a connection may be idle. A tick is a second.
    pub fn set_idle_timeout(&self, idle_timeout: Duration) {
        let seconds = u32::try_from(idle_timeout.as_secs()).unwrap_or(u32::MAX);
        self.idle_ticks.set(seconds);
        *self.kept_alive.borrow_mut() = format!("connection: keep-alive\r\nkeep-alive: timeout={seconds}\r\n");
    }

    /// How long a connection may be idle, in ticks.
    pub fn idle_ticks(&self) -> u32 {
        self.idle_ticks.get()
    }

    /// The header lines of a response to a client that asks whether its connection is kept.
    pub(crate) fn kept_alive(&self) -> Ref<'_, String> {
        self.kept_alive.borrow()
    }

    pub(crate) const fn drains(&self) -> &Arc<DrainLimiter> {
        &self.drains
    }

    /// The value of `Date`, at most a tick old.
    pub(crate) fn date(&self) -> Ref<'_, String> {
        self.date.borrow()
    }

    /// The TLS configuration, if the port has one.
    #[must_use]
    pub fn tls(&self) -> Option<&ServerTls> {
        self.tls.as_deref()
    }

    /// The scheme of this port's URLs.
    pub(crate) const fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// The buffer into which bytes are read before they are parsed.
    pub(crate) fn scratch(&self) -> RefMut<'_, Box<[u8]>> {
        self.scratch.borrow_mut()
    }

    /// The buffer into which responses are written before they are sent.
    pub(crate) fn write_buffer(&self) -> RefMut<'_, Vec<u8>> {
        self.write_buffer.borrow_mut()
    }

    /// The buffer into which bodies are decoded, piece by piece. It is allocated for the first encoded body.
    pub(crate) fn decoded(&self) -> RefMut<'_, Vec<u8>> {
        let mut decoded = self.decoded.borrow_mut();
        decoded.resize(DECODED_BYTES, 0);
        decoded
    }

    /// An empty buffer for bytes that a connection must hold for a while.
    pub(crate) fn spare_buffer(&self) -> Vec<u8> {
        self.spare_buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a buffer that is empty again. A large one, and one too many, is freed.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = self.spare_buffers.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BUFFER_BYTES_MAX {
            spare.push(buffer);
        }
    }
}

fn http_date() -> String {
    httpdate::fmt_http_date(clock::now())
}
