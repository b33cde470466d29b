//! Reads bodies as they arrive: counted against the budget of the service, and no slower than the minimum rate.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use crate::error::{RequestError, RequestErrorKind};

use crate::body_budget::BodyBudget;
use crate::connection::{KeptWaiting, Order, Phase};
use crate::decoded_body::DecodedBody;
use crate::decoder::Coding;
use crate::framing::Framing;
use crate::response::CONTINUE;
use crate::socket::Socket;

/// A rejected body is read to its end if that is near, so the connection can be kept.
const NEAR_BYTES_MAX: u64 = 64 * 1024;

/// A request's body. When its end is read, the connection enters `Phase::Answer`: from then on the client waits for the server.
pub struct Body<'a, B> {
    socket: &'a mut Socket,
    framing: Framing,
    /// The client waits for a go-ahead.
    expects_continue: bool,
    /// How the content is decoded, until its end. Boxed: few bodies are encoded.
    decoding: Option<Box<DecodedBody<B>>>,
    /// Bytes of content received.
    pub(crate) received: usize,
    /// Bytes passed since the task last yielded to the shard's other requests.
    stretch: usize,
}

/// The unread part of a body when the response is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// Nothing: the connection can be kept.
    None,
    /// The client sends it, or has sent it.
    Coming,
    /// The client waits for a go-ahead, and gets the response instead.
    NotSent,
}

/// After so many bytes the task yields to the other requests of the shard.
pub const STRETCH_BYTES: usize = 256 * 1024;

impl<'a, B: BodyBudget> Body<'a, B> {
    pub(crate) fn new(socket: &'a mut Socket, framing: Framing, expects_continue: bool) -> Self {
        let phase = if framing.has_ended() { Phase::Answer } else { Phase::Body };
        socket.connection().enter(phase, socket.now());
        Self { socket, framing, expects_continue, decoding: None, received: 0, stretch: 0 }
    }

    /// From here on the body is decoded; at most `bytes_max` encoded bytes are accepted.
    pub fn decode(&mut self, budget: B, coding: Coding, bytes_max: usize) {
        self.decoding = Some(Box::new(DecodedBody::new(budget, coding, bytes_max)));
    }

    /// Whether all of it was read.
    pub fn has_ended(&self) -> bool {
        self.framing.has_ended()
    }

    /// Until the value is dropped the client can't be too slow: the server isn't reading.
    pub fn keep_waiting(&self) -> KeptWaiting<'_> {
        self.socket.connection().keep_waiting()
    }

    /// Gives the next piece of the content to `take`; `None` at the end.
    ///
    /// # Errors
    /// The body is incomplete, too slow, or can't be decoded.
    pub async fn next<T>(&mut self, mut take: impl FnMut(&[u8]) -> T) -> Result<Option<T>, B::Error> {
        match self.decoding.take() {
            None => Ok(self.next_received(take).await?),
            Some(decoding) => Box::pin(self.next_decoded(decoding, &mut take)).await,
        }
    }

    async fn next_received<T>(&mut self, mut take: impl FnMut(&[u8]) -> T) -> Result<Option<T>, Box<RequestError>> {
        self.go_ahead().await?;
        self.pause().await;
        poll_fn(|context| self.poll_next(context, &mut take)).await
    }

    /// If the decoding fails or ends, `self` doesn't get it back, which frees its memory.
    async fn next_decoded<T>(
        &mut self,
        mut decoding: Box<DecodedBody<B>>,
        take: &mut impl FnMut(&[u8]) -> T,
    ) -> Result<Option<T>, B::Error> {
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
                None => {
                    decoding.finish()?;
                    return Ok(None);
                }
            }
        }
    }

    /// Yields to the shard's other requests.
    async fn pause(&mut self) {
        if self.stretch >= STRETCH_BYTES {
            self.stretch = 0;
            tokio::task::yield_now().await;
        }
    }

    /// Sends a go-ahead (100) to a client that waits for it.
    async fn go_ahead(&mut self) -> Result<(), Box<RequestError>> {
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
    ) -> Poll<Result<Option<T>, Box<RequestError>>> {
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

    fn check_speed(&self) -> Result<(), Box<RequestError>> {
        match self.socket.connection().order() {
            Order::TooSlow => Err(RequestError::boxed(
                RequestErrorKind::Timeout,
                "the body arrived too slowly; send it faster, or in smaller requests",
            )),
            _ => Ok(()),
        }
    }

    /// Gives the whole body to `take`, if it has at most `bytes_max` bytes. A body of known length is shown where it
    /// was received.
    ///
    /// # Errors
    /// As [`Self::next`]; or the body is too large for `bytes_max` or for `budget`.
    pub async fn whole<T>(
        &mut self,
        bytes_max: usize,
        budget: &mut impl BodyBudget<Error = B::Error>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, B::Error> {
        self.check_announced(bytes_max)?;
        let (&Framing::Length(length), None) = (&self.framing, &self.decoding) else {
            return Box::pin(self.gather(bytes_max, budget)).await.map(|whole| take(&whole));
        };
        let length = usize::try_from(length).map_err(|_| too_large(bytes_max))?;
        self.hold(length, budget).await?;
        let result = take(&self.socket.held()[..length]);
        self.socket.take(length);
        self.received = length;
        self.framing = Framing::Length(0);
        self.socket.connection().enter(Phase::Answer, self.socket.now());
        Ok(result)
    }

    /// Waits until so many bytes are held.
    async fn hold(&mut self, length: usize, budget: &mut impl BodyBudget<Error = B::Error>) -> Result<(), B::Error> {
        let mut admitted = 0;
        loop {
            let held = self.socket.held().len().min(length);
            budget.admit(held - admitted)?;
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

    async fn gather(
        &mut self,
        bytes_max: usize,
        budget: &mut impl BodyBudget<Error = B::Error>,
    ) -> Result<Vec<u8>, B::Error> {
        let mut whole = Vec::new();
        let mut add = |bytes: &[u8]| -> Result<(), B::Error> {
            if whole.len() + bytes.len() > bytes_max {
                return Err(too_large(bytes_max).into());
            }
            budget.admit(bytes.len())?;
            whole.extend_from_slice(bytes);
            Ok(())
        };
        while let Some(added) = self.next(&mut add).await? {
            added?;
        }
        Ok(whole)
    }

    /// Rejects a body before it arrives, if the client announces too many bytes.
    ///
    /// # Errors
    /// It does.
    pub fn check_announced(&self, bytes_max: usize) -> Result<(), Box<RequestError>> {
        match self.framing {
            Framing::Length(length) if length > bytes_max as u64 => Err(too_large(bytes_max)),
            _ => Ok(()),
        }
    }

    /// How many bytes will arrive, if the client has announced it.
    pub fn announced(&self) -> Option<usize> {
        match (&self.framing, &self.decoding) {
            (Framing::Length(length), None) => usize::try_from(*length).ok(),
            _ => None,
        }
    }

    /// Reads the rest of a body that isn't used if its end is near: then the connection can be kept.
    pub(crate) async fn finish(&mut self) -> Remainder {
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

fn incomplete() -> Box<RequestError> {
    RequestError::boxed(
        RequestErrorKind::BodyIncomplete,
        "the body ended before its announced length or its last chunk: send all of it",
    )
}

fn too_large(bytes_max: usize) -> Box<RequestError> {
    RequestError::boxed(
        RequestErrorKind::TooLarge,
        format!("the body has more than {bytes_max} bytes: send smaller requests"),
    )
}
