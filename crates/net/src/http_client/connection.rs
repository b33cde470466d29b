//! One connection to a server, driven by the caller that waits for it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::{sleep, timeout};

use super::failure::{HttpFailure, HttpFailureKind};
use super::idle_timeout::{Activity, IdleTimeoutStream};
use super::origin::HttpOrigin;
use super::{HttpOptions, RequestBody};
use crate::stream::{MaybeTlsStream, ServerAddress, is_of_trust};

/// A device between client and server may have dropped a connection that was idle for so long: a new one is opened.
pub const IDLE_MAX: Duration = Duration::from_mins(1);
/// A connection isn't used for longer, so a name's new address is found, and a cluster's new nodes get their share.
const LIFE_MAX: Duration = Duration::from_mins(15);

/// A connection.
pub(super) struct PooledConnection {
    sender: SendRequest<RequestBody>,
    /// Hyper's side of the connection; which error it ends with, its requests report. Without its type, since callers' crates poll it.
    driver: Pin<Box<dyn Future<Output = ()> + Send>>,
    has_ended: bool,
    activity: Arc<Activity>,
    /// The thread whose runtime polls the socket.
    thread: ThreadId,
}

/// The result of sending a request without a response: the request, if nothing of it was sent, or the failure.
type Unanswered = Result<Box<Request<RequestBody>>, HttpFailure>;

impl PooledConnection {
    pub(super) async fn open(origin: &HttpOrigin, options: &HttpOptions) -> Result<Self, HttpFailure> {
        let failure = |kind| origin.failure(kind);
        let HttpOrigin { is_secure, host, port, address } = origin;
        let place = ServerAddress { host, port: *port, is_secure: *is_secure, ca: options.ca.as_deref() };
        let opened = timeout(options.connect_timeout, MaybeTlsStream::open_at(*address, place)).await;
        let stream = opened.map_err(|_| failure(HttpFailureKind::ConnectTimeout(options.connect_timeout)))?;
        let stream = stream.map_err(|error| {
            failure(if is_of_trust(&error) {
                HttpFailureKind::Untrusted(error)
            } else {
                HttpFailureKind::Connect(error)
            })
        })?;
        let activity = Activity::new();
        let watched = TokioIo::new(IdleTimeoutStream::new(stream, Arc::clone(&activity), options.silence_max));
        let (sender, driver) = http1::handshake(watched).await.map_err(|error| failure(error.into()))?;
        let driver = Box::pin(async move { drop(driver.await) });
        Ok(Self { sender, driver, has_ended: false, activity, thread: thread::current().id() })
    }

    /// Sends a request and waits for the response's head.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
        origin: &HttpOrigin,
        silence_max: Duration,
    ) -> Result<Response<Incoming>, Unanswered> {
        self.activity.begin_head();
        let sent = self.sender.try_send_request(request);
        let activity = Arc::clone(&self.activity);
        let answered = self.drive(sent, activity.silence(silence_max), silence_max).await;
        self.activity.end_head();
        answered.map_err(|kind| Err(origin.failure(kind)))?.map_err(|mut error| match error.take_message() {
            Some(request) => Ok(Box::new(request)),
            None => Err(origin.failure(error.into_error().into())),
        })
    }

    /// Waits for the next frame of a response's body: for so long, regardless of other bytes that arrive.
    pub(super) async fn frame(
        &mut self,
        body: &mut Incoming,
        silence_max: Duration,
    ) -> Result<Option<Frame<Bytes>>, HttpFailureKind> {
        let frame = self.drive(body.frame(), sleep(silence_max), silence_max).await?;
        Ok(frame.transpose()?)
    }

    /// Drives the connection until `work` is done, or `deadline` ends.
    async fn drive<T>(
        &mut self,
        work: impl Future<Output = T>,
        deadline: impl Future<Output = ()>,
        silence_max: Duration,
    ) -> Result<T, HttpFailureKind> {
        self.activity.touch();
        let Self { driver, has_ended, .. } = self;
        let mut work = pin!(work);
        let driven = poll_fn(|cx| {
            // The caller that waits for a response or a part of one gets the error.
            *has_ended = *has_ended || driver.as_mut().poll(cx).is_ready();
            work.as_mut().poll(cx)
        });
        match select(driven, pin!(deadline)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(HttpFailureKind::Silent(silence_max)),
        }
    }

    /// Whether the calling thread opened it.
    pub(super) fn is_of_this_thread(&self) -> bool {
        self.thread == thread::current().id()
    }

    /// Whether another request can be sent.
    pub(super) async fn check_fresh(&mut self) -> bool {
        poll_fn(|cx| {
            self.has_ended = self.has_ended || self.driver.as_mut().poll(cx).is_ready();
            Poll::Ready(())
        })
        .await;
        !self.has_ended && self.sender.is_ready() && !self.is_old()
    }

    /// Whether it has waited or lived too long to be used again.
    pub(super) fn is_old(&self) -> bool {
        self.activity.quiet_for() >= IDLE_MAX || self.activity.age() >= LIFE_MAX
    }
}
