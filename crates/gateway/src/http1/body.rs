//! Reads bodies as they arrive: counted against the process's limit, and not slower than the slowest that is allowed.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use event::limits::EVENT_BYTES_MAX;

use crate::admission::Permit;
use crate::code::Code;
use crate::problem::{Problem, Refused};

use super::connection::{Order, Phase};
use super::framing::Framing;
use super::response::CONTINUE;
use super::socket::Socket;

/// A body that is refused is read to its end if that is near, so that the connection can go on.
const DRAIN_BYTES_MAX: u64 = 64 * 1024;

/// A request's body.
pub(crate) struct Body<'a> {
    socket: &'a mut Socket,
    framing: Framing,
    /// The client waits for a go-ahead.
    expects_continue: bool,
    /// Bytes of content received.
    pub(crate) received: usize,
}

impl<'a> Body<'a> {
    pub(super) const fn new(socket: &'a mut Socket, framing: Framing, expects_continue: bool) -> Self {
        Self { socket, framing, expects_continue, received: 0 }
    }

    /// From here on the client waits for us.
    pub(crate) fn is_complete(&self) {
        self.socket.connection().enter(Phase::Answer, self.socket.now());
    }

    /// Gives the next piece of the content to `take`; `None` at the end.
    pub(crate) async fn next<T>(&mut self, mut take: impl FnMut(&[u8]) -> T) -> Result<Option<T>, Refused> {
        if self.expects_continue && !self.framing.has_ended() && self.socket.held().is_empty() {
            let go_ahead = self.socket.write(|bytes| bytes.extend_from_slice(CONTINUE)).await;
            go_ahead.map_err(|_| incomplete())?;
            self.socket.connection().enter(Phase::Body, self.socket.now());
        }
        self.expects_continue = false;
        poll_fn(|context| self.poll_next(context, &mut take)).await
    }

    fn poll_next<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut impl FnMut(&[u8]) -> T,
    ) -> Poll<Result<Option<T>, Refused>> {
        let Self { socket, framing, received, .. } = self;
        while !framing.has_ended() {
            if socket.connection().order() == Order::TooSlow {
                return Poll::Ready(Err(Problem::boxed(Code::Timeout, "the body came too slowly")));
            }
            let mut pass = |bytes: &[u8]| match framing.advance(bytes) {
                Ok((passed, [])) => (passed, Ok(None)),
                Ok((passed, data)) => {
                    *received += data.len();
                    (passed, Ok(Some(take(data))))
                }
                Err(refused) => (bytes.len(), Err(refused)),
            };
            let result = if socket.held().is_empty() {
                match ready!(socket.poll_read(context, pass)) {
                    Ok(Some(result)) => result,
                    Ok(None) | Err(_) => Err(incomplete()),
                }
            } else {
                let (passed, result) = pass(socket.held());
                socket.take(passed);
                result
            };
            if let Some(taken) = result? {
                return Poll::Ready(Ok(Some(taken)));
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Gives the whole body of a single event to `take`. As a rule it has come with its head, and isn't copied.
    pub(crate) async fn event<T>(
        &mut self,
        permit: &mut Permit<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Refused> {
        self.check_announced(EVENT_BYTES_MAX)?;
        if let Framing::Length(left) = &mut self.framing
            && let Ok(length) = usize::try_from(*left)
            && let Some(whole) = self.socket.held().get(..length)
        {
            admit(permit, length)?;
            let result = take(whole);
            *left = 0;
            self.received = length;
            self.socket.take(length);
            return Ok(result);
        }
        Box::pin(self.gather(permit)).await.map(|whole| take(&whole))
    }

    async fn gather(&mut self, permit: &mut Permit<'_>) -> Result<Vec<u8>, Refused> {
        let mut whole = Vec::new();
        let mut add = |bytes: &[u8]| {
            if whole.len() + bytes.len() > EVENT_BYTES_MAX {
                return Err(too_large(EVENT_BYTES_MAX));
            }
            admit(permit, bytes.len())?;
            whole.extend_from_slice(bytes);
            Ok(())
        };
        while let Some(added) = self.next(&mut add).await? {
            added?;
        }
        Ok(whole)
    }

    /// Refuses a body before it comes, if the client says that it is too long.
    pub(crate) fn check_announced(&self, bytes_max: usize) -> Result<(), Refused> {
        match self.framing {
            Framing::Length(length) if length > bytes_max as u64 => Err(too_large(bytes_max)),
            _ => Ok(()),
        }
    }

    /// Reads a body that nobody wants to its end; `false` if that is too far, or nobody knows how far, and the
    /// connection must end.
    pub(super) async fn drain(&mut self) -> bool {
        if self.framing.has_ended() {
            return true;
        }
        let is_near = matches!(self.framing, Framing::Length(left) if left <= DRAIN_BYTES_MAX);
        if !is_near || self.expects_continue && self.socket.held().is_empty() {
            return false;
        }
        self.socket.connection().enter(Phase::Body, self.socket.now());
        loop {
            match self.next(|_| ()).await {
                Ok(Some(())) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
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

fn incomplete() -> Refused {
    Problem::boxed(Code::BodyIncomplete, "the body ended before its end")
}

fn too_large(bytes_max: usize) -> Refused {
    Problem::boxed(Code::TooLarge, format!("the body has more than {bytes_max} bytes"))
}
