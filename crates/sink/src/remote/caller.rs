//! Requests to the writers of an upstream: chooses the writer, sends the request and interprets the answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use futures_util::future::{Either, join_all, select};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::binding::Binding;
use super::protocol::{self, Outcome, SinkInfo};
use super::upstream::{Choice, RequestOutcome, Server, UpstreamConfig, Writers};
use super::{ANSWER_BYTES_MAX, RemoteConfig};
use crate::http_client::{Answer, Body, HttpClient, HttpFailure, HttpOptions, empty, full, shortened};
use crate::{Batch, Reason, SinkError};

/// The time-out of a connection to a writer, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A working writer sends a newline each second: one that is silent for this long is treated as dead.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The longest pause of a lane that found no writer: one may be back at any moment, and a refused connection costs little.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// A request, to be sent to any writer of the upstream.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The path, relative to the sink's.
    pub(crate) path: &'a str,
    pub(crate) lane: Option<&'a Lane>,
    pub(crate) batch: Option<&'a Batch>,
    /// Header fields in addition to those of all requests.
    pub(crate) headers: HeaderMap,
    pub(crate) content: Content<'a>,
    pub(crate) answer_max: usize,
}

/// The body of a request.
pub(crate) enum Content<'a> {
    Empty,
    /// A frame or a query.
    Whole(Bytes),
    /// The bytes of an object: their number, and a function that makes a new body for each writer.
    Object(u64, &'a (dyn Fn() -> Body + Send + Sync)),
}

impl<'a> Call<'a> {
    /// A request without a body and with a short answer.
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        let (headers, content) = (HeaderMap::new(), Content::Empty);
        Self { method, path, lane: None, batch: None, headers, content, answer_max: ANSWER_BYTES_MAX }
    }

    /// The number of bytes to store, if the request stores anything.
    fn stores(&self) -> Option<usize> {
        match &self.content {
            Content::Whole(frame) => self.batch.map(|_| frame.len()),
            Content::Object(bytes, _) => Some(usize::try_from(*bytes).unwrap_or(usize::MAX)),
            Content::Empty => None,
        }
    }
}

/// Connections to the writers of an upstream. They belong to the thread that uses them.
pub(crate) struct Caller {
    config: RemoteConfig,
    client: HttpClient,
    binding: Arc<Binding>,
    /// How often the sink was closed: a change ends the calls in flight.
    closed: watch::Sender<u64>,
}

impl Caller {
    pub(crate) fn new(config: RemoteConfig) -> Self {
        let binding = Arc::new(Binding::new(&config.sink));
        Self::waiting(config, binding, SILENCE_MAX)
    }

    /// The same sink with connections of its own, for requests with another limit of silence.
    pub(crate) fn to_read(&self, silence_max: Duration) -> Self {
        Self::waiting(self.config.clone(), self.binding.clone(), silence_max)
    }

    fn waiting(config: RemoteConfig, binding: Arc<Binding>, silence_max: Duration) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.upstream.config().ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max,
            waits_for_retry_after: false,
        });
        Self { config, client, binding, closed: watch::Sender::new(0) }
    }

    pub(crate) const fn config(&self) -> &RemoteConfig {
        &self.config
    }

    pub(crate) const fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    /// The longest pause after the last failure, if no writer could be reached. If the store failed, the usual pauses apply.
    pub(crate) fn retry_max(&self) -> Option<Duration> {
        self.config.upstream.state().is_unreachable().then_some(RETRY_MAX)
    }

    /// Ends the calls in flight and closes idle connections.
    pub(super) fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        self.client.close_idle();
    }

    /// Sends a request to a writer. The inner error is the failure of the writer's sink.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let mut closed = self.closed.subscribe();
        let work = pin!(self.ask_each(call));
        let closed = pin!(closed.changed());
        let (answer, server) = match select(work, closed).await {
            Either::Left((answer, _)) => answer?,
            Either::Right(_) => return Err(SinkError::Unavailable("the sink was closed".into())),
        };
        let parsed = parse(&answer);
        if parsed.is_err() {
            // The next attempt uses another writer, whose connection to the store may work.
            server.count(RequestOutcome::StoreFailed);
            server.eject_for(&self.config.sink);
        } else {
            server.count(RequestOutcome::Answered);
            if call.stores().is_some() {
                server.stores(&self.config.sink);
            }
        }
        Ok(parsed)
    }

    /// Tries one writer after the other. A batch or object goes to the next one only if the last one certainly did nothing.
    async fn ask_each(&self, call: &Call<'_>) -> Result<(Bytes, Arc<Server>), SinkError> {
        let (upstream, stores) = (&self.config.upstream, call.stores().is_some());
        let mut is_refused = false;
        let mut last = self.no_writer();
        for server in self.order(call) {
            if let (true, Some(lane)) = (stores, call.lane) {
                upstream.state().uses(lane, &server);
            }
            match self.ask(&server, call).await {
                Ok(answer) => {
                    upstream.state().set_unreachable(false);
                    match self.binding.refusal(&server.label(), &answer) {
                        Some(error) => {
                            server.count(RequestOutcome::Refused);
                            (last, is_refused) = (error, true);
                        }
                        None => return Ok((answer, server)),
                    }
                }
                Err(Unanswered::Refused(error)) => {
                    upstream.state().set_unreachable(false);
                    return Err(error);
                }
                Err(Unanswered::Unsent(error)) => last = error,
                Err(Unanswered::Unknown(error)) => {
                    last = error;
                    if stores {
                        break;
                    }
                }
            }
        }
        upstream.state().set_unreachable(!is_refused);
        Err(last)
    }

    /// Asks a writer for bytes. Returns an answer of any status before its body is read, unless it is a writer's own refusal.
    pub(crate) async fn download(&self, call: &Call<'_>) -> Result<Answer, SinkError> {
        let mut last = self.no_writer();
        for server in self.order(call) {
            match self.download_from(&server, call).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Refused(error)) => return Err(error),
                Err(unanswered) => last = unanswered.into_error(),
            }
        }
        Err(last)
    }

    async fn download_from(&self, server: &Server, call: &Call<'_>) -> Result<Answer, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        if answer.headers().get(CONTENT_TYPE).is_some_and(|value| value == protocol::PROBLEM) {
            let status = answer.status();
            let body = answer.bytes(ANSWER_BYTES_MAX).await.map_err(|failure| failed(server, &failure))?;
            in_flight.answered(None);
            return Err(self.refused(server, status, &body));
        }
        in_flight.answered(None);
        server.answers();
        server.count(RequestOutcome::Answered);
        Ok(answer)
    }

    /// The writers in the order in which they are tried.
    fn order(&self, call: &Call<'_>) -> Vec<Arc<Server>> {
        let RemoteConfig { upstream, server, sink, .. } = &self.config;
        let nobody = Lane { origin: event::Origin([0; 16]), shard: 0, sink: sink.as_str().into() };
        let lane = call.lane.unwrap_or(&nobody);
        let choice = Choice { lane, sink, server: server.as_deref(), is_batch: call.stores().is_some() };
        let mut order = upstream.state().order(&choice);
        order.sort_by_key(|server| self.binding.is_refused(&server.label()));
        order
    }

    fn no_writer(&self) -> SinkError {
        let UpstreamConfig { name, writers, .. } = self.config.upstream.config();
        let by = if matches!(writers, Writers::Etcd { .. }) { "etcd" } else { "DNS" };
        SinkError::Unavailable(format!("{by} has not named a writer of the upstream {name} yet").into())
    }

    /// Asks all writers concurrently for the description of their sink.
    pub(super) async fn survey(&self, call: &Call<'_>) -> Vec<(String, Result<SinkInfo, SinkError>)> {
        let ask = |server: Arc<Server>| async move {
            let answer = self.ask(&server, call).await.map_err(Unanswered::into_error);
            let info = answer.and_then(|answer| {
                let info = protocol::differing(&answer).map_or_else(|| parse(&answer), Ok);
                server.count(if info.is_ok() { RequestOutcome::Answered } else { RequestOutcome::StoreFailed });
                info
            });
            (server.label(), info)
        };
        join_all(self.order(call).into_iter().map(ask)).await
    }

    async fn ask(&self, server: &Server, call: &Call<'_>) -> Result<Bytes, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        let is_draining = answer.headers().contains_key(protocol::DRAINING);
        let status = answer.status();
        // If the store is slow, the writer sends one byte a second: no minimum rate applies.
        let body = answer.at_any_rate().bytes(call.answer_max).await.map_err(|failure| failed(server, &failure))?;
        if is_draining {
            server.eject();
        } else if !status.is_server_error() {
            server.answers();
        }
        if status == StatusCode::OK {
            in_flight.answered(call.stores());
            return Ok(body);
        }
        in_flight.answered(None);
        Err(self.refused(server, status, &body))
    }

    /// The writer, or a proxy before it, answered with a status other than 200.
    fn refused(&self, server: &Server, status: StatusCode, body: &[u8]) -> Unanswered {
        server.count(RequestOutcome::Refused);
        if status.is_server_error() {
            server.eject();
        }
        let words = words(server, status, body);
        match status {
            // Neither a writer that drains nor a proxy without a writer has done anything.
            StatusCode::SERVICE_UNAVAILABLE => Unanswered::Unsent(SinkError::Unavailable(words)),
            StatusCode::TOO_MANY_REQUESTS => {
                server.eject_for(&self.config.sink);
                Unanswered::Unsent(SinkError::Unavailable(words))
            }
            // It has another store.
            StatusCode::CONFLICT => Unanswered::Unsent(SinkError::Misconfigured(words)),
            StatusCode::REQUEST_TIMEOUT => Unanswered::Unknown(SinkError::Unavailable(words)),
            status if status.is_server_error() => Unanswered::Unknown(SinkError::Unavailable(words)),
            // The writer understood, and nothing was stored: another one would most likely say the same.
            _ => Unanswered::Refused(SinkError::Misconfigured(words)),
        }
    }

    async fn send(&self, server: &Server, call: &Call<'_>) -> Result<Answer, Unanswered> {
        let request = self.request(server, call).map_err(Unanswered::Refused)?;
        self.client.send_to(server.address(), request).await.map_err(|failure| failed(server, &failure))
    }

    fn request(&self, server: &Server, call: &Call<'_>) -> Result<Request<Body>, SinkError> {
        let RemoteConfig { upstream, sink, .. } = &self.config;
        let UpstreamConfig { token, .. } = upstream.config();
        let wrong =
            |what: &str| SinkError::Misconfigured(format!("a request to the writer can't be made: {what}").into());
        let url = server
            .endpoint()
            .url(&format!("{}/{sink}{}", protocol::PATH, call.path))
            .map_err(|error| wrong(&error.to_string()))?;
        let mut request = Request::builder().method(call.method.clone()).uri(url);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token.header());
        }
        request = self.binding.headers(request);
        if let Some(lane) = call.lane {
            request = request.header(protocol::LANE, protocol::lane_text(lane));
        }
        if let Some(batch) = call.batch {
            request = request.header(protocol::POSITIONS, format!("{}-{}", batch.first(), batch.last()));
            request = request.header(protocol::FLOOR, batch.floor()).header(protocol::AGAIN, batch.again());
            if let Some(claim) = batch.claim() {
                request = request.header(protocol::CLAIM, claim.to_string());
            }
        }
        if let Some(headers) = request.headers_mut() {
            headers.extend(call.headers.clone());
        }
        let body = match &call.content {
            Content::Empty => empty(),
            Content::Whole(frame) => {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(protocol::CONTENT_TYPE));
                full(frame.clone())
            }
            Content::Object(_, make) => make(),
        };
        request.body(body).map_err(|error| wrong(&error.to_string()))
    }
}

/// No answer was received, or only a part of one.
fn failed(server: &Server, failure: &HttpFailure) -> Unanswered {
    server.eject();
    let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable };
    let error = error(format!("writer {failure}").into());
    let is_unsent = failure.is_unsent();
    server.count(if is_unsent { RequestOutcome::Unsent } else { RequestOutcome::NoAnswer });
    if is_unsent { Unanswered::Unsent(error) } else { Unanswered::Unknown(error) }
}

/// The reason of an answer with a status other than 200.
fn words(server: &Server, status: StatusCode, body: &[u8]) -> Reason {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: String,
    }
    let detail = serde_json::from_slice::<Problem>(body).map(|problem| problem.detail);
    let detail = detail.unwrap_or_else(|_| "no Forebay writer answers like this: look at the address".into());
    format!("writer {} answers {status}: {}", server.label(), shortened(&detail)).into()
}

/// Why a request has no answer of 200.
enum Unanswered {
    /// The writer certainly received nothing, or did nothing: the request may go to another one.
    Unsent(SinkError),
    /// The effect is unknown.
    Unknown(SinkError),
    /// The writer refused the request, and another one would too.
    Refused(SinkError),
}

impl Unanswered {
    fn into_error(self) -> SinkError {
        let (Self::Unsent(error) | Self::Unknown(error) | Self::Refused(error)) = self;
        error
    }
}

/// Parses an answer of 200: the value, or why the sink failed.
fn parse<T: DeserializeOwned>(answer: &[u8]) -> Result<T, SinkError> {
    if let Ok(failed @ Outcome::Failed { .. }) = serde_json::from_slice::<Outcome>(answer) {
        failed.into_report(0)?;
    }
    serde_json::from_slice(answer).map_err(|_| odd("something else than was asked for"))
}

pub(super) fn odd(what: &str) -> SinkError {
    SinkError::Unavailable(format!("the writer answers {what}: run the same release of gateway and writer").into())
}
