//! Requests to the writers of an upstream: chooses the writer, sends the request and interprets the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use futures_util::future::join_all;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;

use super::binding::Binding;
use super::protocol::{self, Outcome, SinkInfo};
use super::upstream::{Choice, RequestOutcome, UpstreamConfig, WriterServer, Writers};
use super::{ANSWER_BYTES_MAX, RemoteConfig};
use net::http_client::{HttpClient, HttpFailure, HttpOptions, HttpResponse, RequestBody, empty, full, shortened};
use sink::close_signal::CloseSignal;
use sink::{Batch, Mark, Reason, SinkError, StoreBinding};

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
    Object(u64, &'a (dyn Fn() -> RequestBody + Send + Sync)),
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
    closed: CloseSignal,
}

impl StoreBinding for Caller {
    fn mark(&self) -> Option<Mark> {
        self.binding.mark()
    }

    fn has_other_store(&self) -> bool {
        self.binding.has_other_store()
    }

    fn bind(&self, mark: Option<Mark>) {
        match mark {
            Some(mark) => self.binding.expect(mark),
            None => self.binding.unbind(),
        }
    }

    /// One second if no writer could be reached. If the store failed, the usual pauses apply.
    fn retry_max(&self) -> Option<Duration> {
        self.config.upstream.state().is_unreachable().then_some(RETRY_MAX)
    }
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
        Self { config, client, binding, closed: CloseSignal::default() }
    }

    pub(crate) const fn config(&self) -> &RemoteConfig {
        &self.config
    }

    pub(crate) const fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    /// Ends the calls in flight and closes idle connections.
    pub(super) fn close(&self) {
        self.closed.close();
        self.client.close_idle();
    }

    /// Sends a request to a writer. The inner error is the failure of the writer's sink.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let closed = SinkError::Unavailable("the sink was closed".into());
        let (result, server) = self.closed.unless_closed(closed, self.ask_each(call)).await?;
        if result.is_err() {
            // The next attempt uses another writer, whose connection to the store may work.
            server.count(RequestOutcome::StoreFailed);
            server.eject_for(&self.config.sink);
        } else {
            server.count(RequestOutcome::Answered);
            if call.stores().is_some() {
                server.stores(&self.config.sink);
            }
        }
        Ok(result)
    }

    /// Tries one writer after the other. A batch or object goes to the next one only if the last one certainly did nothing.
    async fn ask_each<T: DeserializeOwned>(
        &self,
        call: &Call<'_>,
    ) -> Result<(Result<T, SinkError>, Arc<WriterServer>), SinkError> {
        let (upstream, stores) = (&self.config.upstream, call.stores().is_some());
        let (mut is_other_store, mut is_unanswered) = (false, false);
        let order = self.order(call);
        let is_empty = order.is_empty();
        let mut last = self.no_writer();
        for server in order {
            if let (true, Some(lane)) = (stores, call.lane) {
                upstream.state().uses(lane, &server);
            }
            match self.ask(&server, call).await {
                Ok(Parsed::Result(result)) => {
                    upstream.state().set_unreachable(false);
                    self.binding.accept(&server.label());
                    return Ok((result, server));
                }
                Ok(Parsed::Differs(info)) => {
                    server.count(RequestOutcome::Refused);
                    last = SinkError::Misconfigured(self.binding.refuse(&server.label(), &info));
                    is_other_store = true;
                }
                Err(Unanswered::Refused(error)) => last = error,
                Err(Unanswered::Unsent(error)) => (last, is_unanswered) = (error, true),
                Err(Unanswered::Unknown(error)) => {
                    (last, is_unanswered) = (error, true);
                    if stores {
                        break;
                    }
                }
            }
        }
        upstream.state().set_unreachable((is_unanswered || is_empty) && !is_other_store);
        Err(last)
    }

    /// Asks a writer for bytes. Returns an answer of any status before its body is read, unless it is a writer's own refusal.
    pub(crate) async fn download(&self, call: &Call<'_>) -> Result<HttpResponse, SinkError> {
        let mut last = self.no_writer();
        for server in self.order(call) {
            match self.download_from(&server, call).await {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => last = unanswered.into_error(),
            }
        }
        Err(last)
    }

    async fn download_from(&self, server: &WriterServer, call: &Call<'_>) -> Result<HttpResponse, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        if !is_of_object(&answer) {
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
    fn order(&self, call: &Call<'_>) -> Vec<Arc<WriterServer>> {
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
        let ask = |server: Arc<WriterServer>| async move {
            let info = match self.ask(&server, call).await {
                Ok(Parsed::Result(info)) => info,
                Ok(Parsed::Differs(info)) => Ok(info),
                Err(unanswered) => return (server.label(), Err(unanswered.into_error())),
            };
            server.count(if info.is_ok() { RequestOutcome::Answered } else { RequestOutcome::StoreFailed });
            (server.label(), info)
        };
        join_all(self.order(call).into_iter().map(ask)).await
    }

    async fn ask<T: DeserializeOwned>(&self, server: &WriterServer, call: &Call<'_>) -> Result<Parsed<T>, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        let is_draining = answer.headers().contains_key(protocol::DRAINING);
        let status = answer.status();
        // If the store is slow, the writer sends one byte a second: no minimum rate applies.
        let body = answer.at_any_rate().bytes(call.answer_max).await.map_err(|failure| failed(server, &failure))?;
        if is_draining {
            server.eject();
        }
        if status != StatusCode::OK {
            in_flight.answered(None);
            return Err(self.refused(server, status, &body));
        }
        let Some(parsed) = parse(&body) else {
            in_flight.answered(None);
            server.count(RequestOutcome::Refused);
            server.eject();
            return Err(Unanswered::Unknown(foreign(server)));
        };
        in_flight.answered(call.stores());
        if !is_draining {
            server.answers();
        }
        Ok(parsed)
    }

    /// The writer, a proxy before it, or another server at its address answered with a status other than 200. The next attempt uses another
    /// writer.
    fn refused(&self, server: &WriterServer, status: StatusCode, body: &[u8]) -> Unanswered {
        server.count(RequestOutcome::Refused);
        let detail = detail(body);
        match status {
            // What a writer refuses for one call says nothing of its other calls.
            StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT if detail.is_some() => {}
            StatusCode::TOO_MANY_REQUESTS => server.eject_for(&self.config.sink),
            // The token is the upstream's.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => server.eject(),
            status if detail.is_none() || status.is_server_error() => server.eject(),
            _ => server.eject_for(&self.config.sink),
        }
        let words = words(server, status, detail);
        match status {
            // Neither a writer that drains nor a proxy without a writer has done anything.
            StatusCode::SERVICE_UNAVAILABLE => Unanswered::Unsent(SinkError::Unavailable(words)),
            StatusCode::TOO_MANY_REQUESTS => Unanswered::Unsent(SinkError::Unavailable(words)),
            // It has another store.
            StatusCode::CONFLICT => Unanswered::Unsent(SinkError::Misconfigured(words)),
            StatusCode::REQUEST_TIMEOUT => Unanswered::Unknown(SinkError::Unavailable(words)),
            status if status.is_server_error() => Unanswered::Unknown(SinkError::Unavailable(words)),
            // No writer answers like this.
            status if status.is_success() => Unanswered::Unknown(SinkError::Misconfigured(words)),
            _ => Unanswered::Refused(SinkError::Misconfigured(words)),
        }
    }

    async fn send(&self, server: &WriterServer, call: &Call<'_>) -> Result<HttpResponse, Unanswered> {
        let request = self.request(server, call).map_err(Unanswered::Refused)?;
        self.client.send_to(server.address(), request).await.map_err(|failure| failed(server, &failure))
    }

    fn request(&self, server: &WriterServer, call: &Call<'_>) -> Result<Request<RequestBody>, SinkError> {
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
fn failed(server: &WriterServer, failure: &HttpFailure) -> Unanswered {
    server.eject();
    let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable };
    let error = error(format!("writer {failure}").into());
    let is_unsent = failure.is_unsent();
    server.count(if is_unsent { RequestOutcome::Unsent } else { RequestOutcome::NoAnswer });
    if is_unsent { Unanswered::Unsent(error) } else { Unanswered::Unknown(error) }
}

/// The reason that a writer gives for a refusal. `None`: the body is not a writer's.
fn detail(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: String,
    }
    serde_json::from_slice::<Problem>(body).ok().map(|problem| problem.detail)
}

/// The reason of an answer with a status other than 200.
fn words(server: &WriterServer, status: StatusCode, detail: Option<String>) -> Reason {
    let detail = detail.unwrap_or_else(|| "no Forebay writer answers like this: look at the address".into());
    format!("writer {} answers {status}: {}", server.label(), shortened(&detail)).into()
}

/// Whether a writer may answer a request for an object like this. A missing object has an empty body.
fn is_of_object(answer: &HttpResponse) -> bool {
    let is = |name, wanted: &str| answer.headers().get(name).is_some_and(|value| value == wanted);
    match answer.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED => true,
        StatusCode::NOT_FOUND => is(CONTENT_LENGTH, "0"),
        StatusCode::BAD_GATEWAY => !is(CONTENT_TYPE, protocol::PROBLEM),
        _ => false,
    }
}

/// The answer of 200 is not a writer's.
fn foreign(server: &WriterServer) -> SinkError {
    let what =
        "answers 200, but not as a Forebay writer: look at the address, and run the same release of gateway and writer";
    SinkError::Unavailable(format!("writer {} {what}", server.label()).into())
}

/// Why a request has no answer of 200.
enum Unanswered {
    /// The writer certainly received nothing, or did nothing: the request may go to another one.
    Unsent(SinkError),
    /// The effect is unknown.
    Unknown(SinkError),
    /// The server refused the request and did nothing: the request may go to another one, which may refuse it too.
    Refused(SinkError),
}

impl Unanswered {
    fn into_error(self) -> SinkError {
        let (Self::Unsent(error) | Self::Unknown(error) | Self::Refused(error)) = self;
        error
    }
}

/// A writer's answer of 200.
enum Parsed<T> {
    /// The value, or why the writer's sink failed.
    Result(Result<T, SinkError>),
    /// The writer's sink or store differs from the bound one.
    Differs(SinkInfo),
}

/// Parses an answer of 200. `None`: no writer of this release answers like this.
fn parse<T: DeserializeOwned>(answer: &[u8]) -> Option<Parsed<T>> {
    match serde_json::from_slice::<Outcome>(answer) {
        Ok(Outcome::Differs { info }) => Some(Parsed::Differs(info)),
        Ok(failed @ Outcome::Failed { .. }) => {
            failed.into_write_outcome(0).err().map(|error| Parsed::Result(Err(error)))
        }
        _ => serde_json::from_slice(answer).ok().map(|value| Parsed::Result(Ok(value))),
    }
}

pub(super) fn odd(what: &str) -> SinkError {
    SinkError::Unavailable(format!("the writer answers {what}: run the same release of gateway and writer").into())
}
