//! Reads bodies as they arrive: counted against the process's limit, and not slower than the slowest that is allowed.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use event::limits::EVENT_BYTES_MAX;
use hyper::body::{Body, Incoming};

use crate::admission::Permit;
use crate::code::Code;
use crate::connection::{Connection, Order, Phase};
use crate::problem::{Problem, Refused};
use crate::self_wakes;

/// A body that is refused is read to its end if that is near, so that the connection can go on.
const DRAIN_BYTES_MAX: u64 = 64 * 1024;

/// A request's body.
pub(crate) struct RequestBody {
    incoming: Incoming,
    connection: Rc<Connection>,
    now: u32,
    /// The client waits for a go-ahead, which reading gives.
    expects_continue: bool,
    /// Bytes received.
    pub(crate) received: usize,
}

impl RequestBody {
    pub(crate) const fn new(incoming: Incoming, connection: Rc<Connection>, now: u32, expects_continue: bool) -> Self {
        Self { incoming, connection, now, expects_continue, received: 0 }
    }

    /// From here on the client waits for us.
    pub(crate) fn is_complete(&self) {
        self.connection.enter(Phase::Answer, self.now);
    }

    pub(crate) fn request_ended(&self, now: u32) {
        self.connection.request_ended(now);
    }

    /// Ends the connection after the answer, though more of the body may come.
    pub(crate) fn leave(&self) {
        self.connection.lingers.set(true);
    }

    fn has_ended(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// What the client says the body's length is, if it says so.
    fn announced(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The next bytes, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        loop {
            let (incoming, connection) = (&mut self.incoming, &self.connection);
            let frame = poll_fn(|context| {
                if connection.order() == Order::TooSlow {
                    return Poll::Ready(Err(Problem::boxed(Code::Timeout, "the body came too slowly")));
                }
                let (frame, woken) = self_wakes::held_back(|| Pin::new(&mut *incoming).poll_frame(context));
                if woken && !incoming.is_end_stream() {
                    context.waker().wake_by_ref();
                }
                frame.map(Ok)
            });
            let Some(frame) = frame.await? else { return Ok(None) };
            let frame = frame.map_err(|_| Problem::boxed(Code::BodyIncomplete, "the body ended before its end"))?;
            // What is no data is a trailer, which nobody reads.
            if let Ok(data) = frame.into_data() {
                self.received += data.len();
                return Ok(Some(data));
            }
        }
    }

    /// The whole body of a single event. As a rule it is one piece, which is not copied.
    pub(crate) async fn event(&mut self, permit: &mut Permit<'_>) -> Result<Bytes, Refused> {
        self.check_announced(EVENT_BYTES_MAX)?;
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        admit(permit, first.len())?;
        if self.has_ended() {
            return if first.len() > EVENT_BYTES_MAX { Err(too_large(EVENT_BYTES_MAX)) } else { Ok(first) };
        }
        Box::pin(self.gather(first, permit)).await
    }

    async fn gather(&mut self, first: Bytes, permit: &mut Permit<'_>) -> Result<Bytes, Refused> {
        let mut whole = BytesMut::from(first);
        while let Some(more) = self.next().await? {
            if whole.len() + more.len() > EVENT_BYTES_MAX {
                return Err(too_large(EVENT_BYTES_MAX));
            }
            admit(permit, more.len())?;
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }

    /// Refuses a body before it comes, if the client says that it is too long.
    pub(crate) fn check_announced(&self, bytes_max: usize) -> Result<(), Refused> {
        match self.announced() {
            Some(length) if length > bytes_max as u64 => Err(too_large(bytes_max)),
            _ => Ok(()),
        }
    }

    /// Reads a body that nobody wants to its end; `false` if that is too far, or nobody knows how far, and the
    /// connection must end.
    pub(crate) async fn drain(&mut self) -> bool {
        let is_near = self.announced().is_some_and(|left| left <= DRAIN_BYTES_MAX);
        if self.has_ended() {
            return true;
        }
        if self.expects_continue || !is_near {
            return false;
        }
        self.connection.enter(Phase::Body, self.now);
        while !self.has_ended() {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// Counts bytes that have arrived.
///
/// # Errors
/// Too many wait to become durable.
pub(crate) fn admit(permit: &mut Permit<'_>, bytes: usize) -> Result<(), Refused> {
    if permit.grow(bytes) {
        return Ok(());
    }
    Err(Problem::boxed(Code::Overload, "too many bytes wait to become durable; send the request again later"))
}

fn too_large(bytes_max: usize) -> Refused {
    Problem::boxed(Code::TooLarge, format!("the body has more than {bytes_max} bytes"))
}
