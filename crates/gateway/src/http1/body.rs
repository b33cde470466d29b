//! Reads bodies as they arrive: counted against the process's limit, and not slower than the slowest that is allowed.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use crate::admission::Permit;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

use super::connection::{KeptWaiting, Order, Phase};
use super::decoded_body::DecodedBody;
use super::decoder::Coding;
use super::framing::Framing;
use super::response::CONTINUE;
use super::socket::Socket;

/// A body that is refused is read to its end if that is near, so that the connection can go on.
const NEAR_BYTES_MAX: u64 = 64 * 1024;

/// A request's body. When its end is read, the connection enters [`Phase::Answer`]: from then on the client waits for
/// us.
pub(crate) struct Body<'a> {
    socket: &'a mut Socket,
    framing: Framing,
    /// The client waits for a go-ahead.
    expects_continue: bool,
    /// How the content is decoded, until its end. Boxed: few bodies are encoded.
    decoding: Option<Box<DecodedBody<'a>>>,
    /// Bytes of content received.
    pub(super) received: usize,
    /// Bytes passed since the shard's other requests had their turn.
    stretch: usize,
}

/// What isn't read of a body when the response is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remainder {
    /// Nothing: the connection can be kept.
    None,
    /// The client sends it, or has sent it.
    Coming,
    /// The client waits for a go-ahead, and gets the response instead.
    NotSent,
}

/// After so many bytes the other requests of the shard have their turn.
pub(crate) const STRETCH_BYTES: usize = 256 * 1024;

impl<'a> Body<'a> {
    pub(super) fn new(socket: &'a mut Socket, framing: Framing, expects_continue: bool) -> Self {
        let phase = if framing.has_ended() { Phase::Answer } else { Phase::Body };
        socket.connection().enter(phase, socket.now());
        Self { socket, framing, expects_continue, decoding: None, received: 0, stretch: 0 }
    }

    /// From here on the body is what comes out of its coding, of which at most `bytes_max` bytes come in.
    pub(crate) fn decode(&mut self, permit: Permit<'a>, coding: Coding, bytes_max: usize) {
        self.decoding = Some(Box::new(DecodedBody::new(permit, coding, bytes_max)));
    }

    /// Whether all of it was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.framing.has_ended()
    }

    /// Until the value is dropped the client isn't too slow: nobody reads what it sends.
    pub(crate) fn keep_waiting(&self) -> KeptWaiting<'_> {
        self.socket.connection().keep_waiting()
    }

    /// Gives the next piece of the content to `take`; `None` at the end.
    pub(crate) async fn next<T>(&mut self, mut take: impl FnMut(&[u8]) -> T) -> Result<Option<T>, Refused> {
        match self.decoding.take() {
            None => self.next_received(take).await,
            Some(decoding) => Box::pin(self.next_decoded(decoding, &mut take)).await,
        }
    }

    async fn next_received<T>(&mut self, mut take: impl FnMut(&[u8]) -> T) -> Result<Option<T>, Refused> {
        self.go_ahead().await?;
        self.pause().await;
        poll_fn(|context| self.poll_next(context, &mut take)).await
    }

    /// Where the decoding fails or ends it isn't put back, so that its memory is free.
    async fn next_decoded<T>(
        &mut self,
        mut decoding: Box<DecodedBody<'a>>,
        take: &mut impl FnMut(&[u8]) -> T,
    ) -> Result<Option<T>, Refused> {
        loop {
            if decoding.has_work() {
                self.pause().await;
                let (passed, taken) = decoding.step(self.socket.transport(), &mut *take)?;
                self.stretch += passed;
                if taken.is_some() {
                    self.decoding = Some(decoding);
                    return Ok(taken);
                }
                continue;
            }
            match self.next_received(|piece| decoding.add(piece)).await? {
                Some(added) => added?,
                None => return decoding.finish().map(|()| None),
            }
        }
    }

    /// Lets the shard's other requests have their turn.
    async fn pause(&mut self) {
        if self.stretch >= STRETCH_BYTES {
            self.stretch = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Tells a client that waits for it to send the body.
    async fn go_ahead(&mut self) -> Result<(), Refused> {
        if std::mem::take(&mut self.expects_continue) && !self.has_ended() && self.socket.held().is_empty() {
            let written = self.socket.write(|bytes| bytes.extend_from_slice(CONTINUE)).await;
            written.map_err(|_| incomplete())?;
            self.socket.connection().enter(Phase::Body, self.socket.now());
        }
        Ok(())
    }

    fn poll_next<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut impl FnMut(&[u8]) -> T,
    ) -> Poll<Result<Option<T>, Refused>> {
        while !self.framing.has_ended() {
            self.check_speed()?;
            let Self { socket, framing, received, stretch, .. } = self;
            let most = framing.left();
            let mut pass = |bytes: &[u8]| match framing.advance(bytes) {
                Ok((passed, data)) => {
                    *stretch += passed;
                    *received += data.len();
                    (passed, Ok((!data.is_empty()).then(|| take(data))))
                }
                Err(refused) => (bytes.len(), Err(refused)),
            };
            let result = if socket.held().is_empty() {
                match ready!(socket.poll_read(context, most, pass)) {
                    Ok(Some(result)) => result,
                    Ok(None) | Err(_) => Err(incomplete()),
                }
            } else {
                let (passed, result) = pass(socket.held());
                socket.take(passed);
                result
            };
            if framing.has_ended() {
                socket.connection().enter(Phase::Answer, socket.now());
            }
            if let Some(taken) = result? {
                return Poll::Ready(Ok(Some(taken)));
            }
        }
        Poll::Ready(Ok(None))
    }

    fn check_speed(&self) -> Result<(), Refused> {
        match self.socket.connection().order() {
            Order::TooSlow => Err(Problem::boxed(ErrorCode::Timeout, "the body came too slowly")),
            _ => Ok(()),
        }
    }

    /// Gives the whole body to `take`, if it has at most `bytes_max` bytes. A body of known length is shown where it
    /// was received.
    pub(crate) async fn whole<T>(
        &mut self,
        bytes_max: usize,
        permit: &mut Permit<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Refused> {
        self.check_announced(bytes_max)?;
        let (&Framing::Length(length), None) = (&self.framing, &self.decoding) else {
            return Box::pin(self.gather(bytes_max, permit)).await.map(|whole| take(&whole));
        };
        let length = usize::try_from(length).map_err(|_| too_large(bytes_max))?;
        self.hold(length, permit).await?;
        let result = take(&self.socket.held()[..length]);
        self.socket.take(length);
        self.received = length;
        self.framing = Framing::Length(0);
        self.socket.connection().enter(Phase::Answer, self.socket.now());
        Ok(result)
    }

    /// Waits until so many bytes are held.
    async fn hold(&mut self, length: usize, permit: &mut Permit<'_>) -> Result<(), Refused> {
        let mut admitted = 0;
        loop {
            let held = self.socket.held().len().min(length);
            permit.admit(held - admitted)?;
            if held == length {
                return Ok(());
            }
            admitted = held;
            self.go_ahead().await?;
            poll_fn(|context| {
                self.check_speed()?;
                match ready!(self.socket.poll_read(context, length - held, |_| (0, ()))) {
                    Ok(Some(())) => Poll::Ready(Ok(())),
                    Ok(None) | Err(_) => Poll::Ready(Err(incomplete())),
                }
            })
            .await?;
        }
    }

    async fn gather(&mut self, bytes_max: usize, permit: &mut Permit<'_>) -> Result<Vec<u8>, Refused> {
        let mut whole = Vec::new();
        let mut add = |bytes: &[u8]| {
            if whole.len() + bytes.len() > bytes_max {
                return Err(too_large(bytes_max));
            }
            permit.admit(bytes.len())?;
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

    /// How many bytes will come, where that is known.
    pub(crate) fn announced(&self) -> Option<usize> {
        match (&self.framing, &self.decoding) {
            (Framing::Length(length), None) => usize::try_from(*length).ok(),
            _ => None,
        }
    }

    /// Reads the rest of a body that isn't used if its end is near: then the connection can be kept.
    pub(super) async fn finish(&mut self) -> Remainder {
        self.decoding = None;
        if self.has_ended() {
            return Remainder::None;
        }
        if self.expects_continue && self.socket.held().is_empty() {
            return Remainder::NotSent;
        }
        if !matches!(self.framing, Framing::Length(left) if left <= NEAR_BYTES_MAX) {
            return Remainder::Coming;
        }
        loop {
            match self.next(|_| ()).await {
                Ok(Some(())) => {}
                Ok(None) => return Remainder::None,
                Err(_) => return Remainder::Coming,
            }
        }
    }
}

fn incomplete() -> Refused {
    Problem::boxed(ErrorCode::BodyIncomplete, "the body ended before its end")
}

fn too_large(bytes_max: usize) -> Refused {
    Problem::boxed(ErrorCode::TooLarge, format!("the body has more than {bytes_max} bytes"))
}
