//! A connection for many requests and subscriptions of one thread. It reconnects, and buffers nothing while it is
//! disconnected.
//!
//! Commands are appended to a buffer, which the connection's task takes as a whole when the runtime polls it: one write
//! for all requests of an iteration. A response wakes its request's task.

mod bus_error;
mod connect;
mod driver;
mod keeper;
mod link;
mod queue;
mod shared;
mod slots;
mod subscription;

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{AbortHandle, spawn_local};
use tokio::time::timeout;

use crate::connect_options::ConnectOptions;
use crate::message::Message;
use crate::subject::Subject;
pub use bus_error::BusError;
use shared::Shared;
pub use subscription::Subscription;

/// How long [`Bus::close`] waits until the server has received everything.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a response's subject: with its sizes a command is below the server's limit of 4 KiB a line.
const REPLY_BYTES_MAX: usize = 2048;

/// A connection for many requests and subscriptions, for one thread. Clones share it. It is closed with the last clone.
#[derive(Clone)]
pub struct Bus(Rc<Handle>);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Its subject.
    pub subject: &'a Subject,
    /// Lines of headers, each with its end: `Name: value\r\n`. Names and values have no control characters.
    pub headers: &'a [u8],
    /// Its content.
    pub payload: &'a [u8],
}

struct Handle {
    shared: Rc<Shared>,
    keeper: AbortHandle,
}

impl Bus {
    /// Starts to connect, in a task of the current local runtime, which has I/O and timers.
    ///
    /// # Panics
    /// Outside of a local runtime.
    #[must_use]
    pub fn start(options: ConnectOptions) -> Self {
        let shared = Rc::new(Shared::new(options));
        let keeper = spawn_local(keeper::keep(Rc::clone(&shared))).abort_handle();
        Self(Rc::new(Handle { shared, keeper }))
    }

    /// Sends a request and returns its response. The request is encoded by the call; the future borrows nothing. A
    /// dropped future discards its response.
    ///
    /// # Errors
    /// [`BusError`] says whether the request was sent.
    pub fn request(
        &self,
        outgoing: &Outgoing<'_>,
        limit: Duration,
    ) -> impl Future<Output = Result<Message, BusError>> + use<> {
        self.request_with_room(outgoing, limit, Box::new(|_| true))
    }

    /// Sends a request as [`Self::request`] does. A large response is read only if `has_room` of its bytes, and is skipped
    /// otherwise: a connection whose messages aren't read is closed by its server.
    ///
    /// # Errors
    /// [`BusError::NoRoom`], and those of [`Self::request`].
    pub fn request_with_room(
        &self,
        outgoing: &Outgoing<'_>,
        limit: Duration,
        has_room: Box<dyn Fn(usize) -> bool>,
    ) -> impl Future<Output = Result<Message, BusError>> + use<> {
        let waiting = self.0.shared.request(outgoing, has_room);
        async move { timeout(limit, waiting?).await.unwrap_or(Err(BusError::TimedOut)) }
    }

    /// Publishes a response to the subject of [`Message::reply`].
    ///
    /// # Errors
    /// [`BusError::Unavailable`], [`BusError::TooLarge`], or [`BusError::Forbidden`] for a subject without `_` at its
    /// beginning, as inboxes have it: a request could otherwise send a message to any service, or call the API of the
    /// server, with the permissions of this client.
    pub fn publish(&self, subject: &[u8], headers: &[u8], payload: &[u8]) -> Result<(), BusError> {
        if subject.len() > REPLY_BYTES_MAX || !subject.starts_with(b"_") {
            return Err(BusError::Forbidden("a subject for responses begins with _, as in _INBOX.x".to_owned()));
        }
        self.0.shared.link()?.publish(subject, b"", headers, payload)
    }

    /// Subscribes, now and after each reconnection. A message for a queue group goes to one of its subscriptions.
    ///
    /// When the connection moves to another server, a message without a queue group may be lost, or come twice. In a
    /// queue group, the previous server still delivers for a second.
    #[must_use]
    pub fn subscribe(&self, subject: &Subject, queue: Option<&str>) -> Subscription {
        Subscription::new(self.0.shared.subscribe(subject, queue), Rc::clone(&self.0.shared))
    }

    /// Whether requests can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.shared.link().is_ok()
    }

    /// Waits until requests can be sent, or the bus is closed.
    pub async fn connected(&self) {
        self.0.shared.connected().await;
    }

    /// The maximum of bytes of a message, including headers, at the current or last server; 1 MiB before the first one.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.0.shared.max_payload.get()
    }

    /// Sends buffered commands and closes the connection, within two seconds. Waiting requests fail as
    /// [`BusError::Lost`], and subscriptions end.
    pub async fn close(&self) {
        let links = self.0.stop();
        let all = async {
            for link in links {
                link.until(|link| link.has_ended()).await;
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, all).await;
    }
}

impl Handle {
    /// Ends the task that connects, and begins to close its connections.
    fn stop(&self) -> Vec<Rc<link::Link>> {
        self.keeper.abort();
        self.shared.close()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
