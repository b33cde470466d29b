//! One request to one writer: builds it, sends it, interprets the answer, and records what it says of the writer's health.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::binding::Binding;
use super::upstream::{RequestOutcome, Upstream, UpstreamConfig, WriterServer};
use net::http_client::{HttpClient, HttpFailure, HttpOptions, HttpResponse, RequestBody, empty, full, shortened};
use sink::{Batch, Reason, SinkError};
use writer_protocol::version::{self, Peer};
use writer_protocol::{Outcome, SinkInfo, wire};

/// The largest answer that isn't about a batch, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The timeout of a connection to a writer, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A slower object makes no progress: the limit of an answer's time grows with the object by this rate, in bytes a second.
const OBJECT_RATE_MIN: u64 = 256 * 1024;

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

    /// The time that an object may take in addition to the store's.
    fn transfer_time(&self) -> Duration {
        match self.content {
            Content::Object(bytes, _) => Duration::from_secs(bytes / OBJECT_RATE_MIN),
            Content::Whole(_) | Content::Empty => Duration::ZERO,
        }
    }

    /// The number of bytes to store, if the request stores anything.
    pub(crate) fn stores(&self) -> Option<usize> {
        match &self.content {
            Content::Whole(frame) => self.batch.map(|_| frame.len()),
            Content::Object(bytes, _) => Some(usize::try_from(*bytes).unwrap_or(usize::MAX)),
            Content::Empty => None,
        }
    }
}

/// Sends requests for one sink to writers of an upstream, over its own connections.
pub(crate) struct Exchange {
    upstream: Upstream,
    /// The sink's name in the writers' configuration.
    sink: String,
    client: HttpClient,
    binding: Arc<Binding>,
    /// How long a writer may send heartbeats before its answer.
    response_timeout: Duration,
}

impl Exchange {
    pub(crate) fn new(upstream: &Upstream, sink: &str, binding: Arc<Binding>, silence_max: Duration) -> Self {
        let UpstreamConfig { ca, response_timeout, .. } = upstream.config();
        let client = HttpClient::new(HttpOptions {
            ca: ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max,
            waits_for_retry_after: false,
        });
        let (upstream, sink, response_timeout) = (upstream.clone(), sink.to_owned(), *response_timeout);
        Self { upstream, sink, client, binding, response_timeout }
    }

    /// The same with a shorter limit of heartbeats.
    pub(crate) fn answered_within(self, response_timeout: Duration) -> Self {
        Self { response_timeout: self.response_timeout.min(response_timeout), ..self }
    }

    pub(crate) fn close_idle(&self) {
        self.client.close_idle();
    }

    /// Asks a writer for bytes. Returns an answer of any status before its body is read, unless a writer rejects the request.
    pub(crate) async fn download(&self, server: &WriterServer, call: &Call<'_>) -> Result<HttpResponse, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        let writer = peer(&answer);
        if !is_of_object(&answer, &writer) {
            let status = answer.status();
            let body = answer.bytes(ANSWER_BYTES_MAX).await.map_err(|failure| failed(server, &failure))?;
            in_flight.answered(None);
            return Err(self.refused(server, &writer, status, &body));
        }
        in_flight.answered(None);
        if !writer.is_current() {
            return Err(Unanswered::Unsent(other_version(server, &writer)));
        }
        server.answers(true);
        server.count(RequestOutcome::Answered);
        Ok(answer)
    }

    /// Sends a request and parses the answer. A failure of the writer's sink ejects the writer for this sink.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        server: &WriterServer,
        call: &Call<'_>,
    ) -> Result<Parsed<T>, Unanswered> {
        let in_flight = server.begin();
        let answer = self.send(server, call).await?;
        let is_draining = answer.headers().contains_key(wire::DRAINING);
        let writer = peer(&answer);
        let status = answer.status();
        // If the store is slow, the writer sends one byte a second: no minimum rate applies.
        let body = answer.at_any_rate().bytes(call.answer_max);
        let limit = self.response_timeout + call.transfer_time();
        let body = timeout(limit, body).await.map_err(|_| self.cut_off(server, limit))?;
        let body = body.map_err(|failure| failed(server, &failure))?;
        if is_draining {
            server.eject("it drains".into());
        }
        if status != StatusCode::OK {
            in_flight.answered(None);
            return Err(self.refused(server, &writer, status, &body));
        }
        let Some(parsed) = parse(&body) else {
            in_flight.answered(None);
            server.count(RequestOutcome::Refused);
            let error = foreign(server);
            server.eject(reason(&error));
            return Err(Unanswered::Unknown(error));
        };
        if !writer.is_current() {
            in_flight.answered(None);
            return Err(Unanswered::Unknown(other_version(server, &writer)));
        }
        in_flight.answered(call.stores());
        let is_probe = call.stores().is_none();
        if !is_draining {
            server.answers(is_probe);
        }
        self.record(server, &parsed, is_probe);
        Ok(parsed)
    }

    fn record<T>(&self, server: &WriterServer, parsed: &Parsed<T>, is_probe: bool) {
        match parsed {
            Parsed::Result(Ok(_)) => {
                server.count(RequestOutcome::Answered);
                server.serves(&self.sink, is_probe);
            }
            // The next attempt uses another writer, whose connection to the store may work.
            Parsed::Result(Err(error)) => {
                server.count(RequestOutcome::StoreFailed);
                server.eject_for(&self.sink, reason(error));
            }
            Parsed::Differs(_) => server.count(RequestOutcome::Refused),
        }
    }

    /// The writer has sent heartbeats for too long. Its other sinks may work.
    fn cut_off(&self, server: &WriterServer, limit: Duration) -> Unanswered {
        server.count(RequestOutcome::NoAnswer);
        let words: Reason = format!(
            "writer {} has sent heartbeats for {limit:?} without a response of its sink {}: check its store, or raise response_timeout \
             of the upstream",
            server.label(),
            self.sink
        )
        .into();
        server.eject_for(&self.sink, words.clone());
        Unanswered::Unknown(SinkError::Unavailable(words))
    }

    /// The writer, a proxy before it, or another server at its address answered with a status other than 200. The next attempt uses another
    /// writer.
    fn refused(&self, server: &WriterServer, writer: &Peer, status: StatusCode, body: &[u8]) -> Unanswered {
        let detail = detail(body);
        if has_other_version(writer, status, detail.is_some()) {
            return Unanswered::Unsent(other_version(server, writer));
        }
        server.count(RequestOutcome::Refused);
        let words = words(server, status, detail.clone());
        match status {
            // A rejection of one call says nothing of the writer's other calls.
            StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT if detail.is_some() => {}
            StatusCode::TOO_MANY_REQUESTS => server.eject_for(&self.sink, words.clone()),
            // The token is the upstream's.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => server.eject(words.clone()),
            status if detail.is_none() || status.is_server_error() => server.eject(words.clone()),
            _ => server.eject_for(&self.sink, words.clone()),
        }
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
        let UpstreamConfig { token, .. } = self.upstream.config();
        let sink = &self.sink;
        let wrong =
            |what: &str| SinkError::Misconfigured(format!("cannot build a request to the writer: {what}").into());
        let url = server
            .endpoint()
            .url(&format!("{}/{sink}{}", wire::PATH, call.path))
            .map_err(|error| wrong(&error.to_string()))?;
        let mut request = Request::builder().method(call.method.clone()).uri(url).header(wire::PROTOCOL, version::OWN);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token.header());
        }
        request = self.binding.headers(request);
        if let Some(lane) = call.lane {
            request = request.header(wire::LANE, wire::lane_text(lane));
        }
        if let Some(batch) = call.batch {
            request = request.header(wire::POSITIONS, format!("{}-{}", batch.first(), batch.last()));
            if let Some(traces) = wire::traces_text(batch.traces()) {
                request = request.header(wire::TRACES, traces);
            }
            request = request.header(wire::MIN_POSITION, batch.floor()).header(wire::RESENT_THROUGH, batch.again());
            if let Some(claim) = batch.claim() {
                request = request.header(wire::CLAIM, claim.to_string());
            }
        }
        if let Some(headers) = request.headers_mut() {
            headers.extend(call.headers.clone());
        }
        let body = match &call.content {
            Content::Empty => empty(),
            Content::Whole(frame) => {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(wire::CONTENT_TYPE));
                full(frame.clone())
            }
            Content::Object(_, make) => make(),
        };
        request.body(body).map_err(|error| wrong(&error.to_string()))
    }
}

/// No answer was received, or only a part of one.
fn failed(server: &WriterServer, failure: &HttpFailure) -> Unanswered {
    let reason: Reason = format!("writer {failure}").into();
    server.eject(reason.clone());
    let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable }(reason);
    let is_unsent = failure.is_unsent();
    server.count(if is_unsent { RequestOutcome::Unsent } else { RequestOutcome::NoAnswer });
    if is_unsent { Unanswered::Unsent(error) } else { Unanswered::Unknown(error) }
}

fn reason(error: &SinkError) -> Reason {
    error.to_string().into()
}

/// The writer's reason for a rejection. `None`: the body is not a writer's.
fn detail(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Problem {
        detail: String,
    }
    serde_json::from_slice::<Problem>(body).ok().map(|problem| problem.detail)
}

/// The reason of an answer with a status other than 200.
fn words(server: &WriterServer, status: StatusCode, detail: Option<String>) -> Reason {
    let detail = detail.unwrap_or_else(|| "this is not the response of a Forebay writer: check the address".into());
    format!("writer {} responded {status}: {}", server.label(), shortened(&detail)).into()
}

/// The version and the release of a writer, by its answer.
fn peer(answer: &HttpResponse) -> Peer {
    Peer::new(answer.headers().get(wire::PROTOCOL).and_then(|value| value.to_str().ok()))
}

/// Whether a writer of another version rejected the request. `has_detail`: the body is a writer's. A writer that names no version rejects what it
/// doesn't understand with one of these statuses; others, such as that of a missing token, have their own messages.
fn has_other_version(writer: &Peer, status: StatusCode, has_detail: bool) -> bool {
    let is_unknown_to_it = matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    if writer.is_named() { !writer.is_current() } else { has_detail && is_unknown_to_it }
}

/// The writer has another version, and no lane uses it until an upgrade. Its answer is never a rejection of events.
fn other_version(server: &WriterServer, writer: &Peer) -> SinkError {
    server.count(RequestOutcome::Refused);
    let reason: Reason = format!("writer {}: {}", server.label(), version::writer_differs(writer)).into();
    server.eject(reason.clone());
    SinkError::Unavailable(reason)
}

/// Whether a writer may answer a request for an object like this. A missing object has an empty body.
fn is_of_object(answer: &HttpResponse, writer: &Peer) -> bool {
    let is = |name, wanted: &str| answer.headers().get(name).is_some_and(|value| value == wanted);
    match answer.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED => true,
        StatusCode::NOT_FOUND => is(CONTENT_LENGTH, "0"),
        StatusCode::BAD_GATEWAY => writer.is_named() && !is(CONTENT_TYPE, wire::PROBLEM),
        _ => false,
    }
}

/// The answer of 200 is not a writer's.
fn foreign(server: &WriterServer) -> SinkError {
    let what = "responded 200, but not as a Forebay writer: check the address";
    SinkError::Unavailable(format!("writer {} {what}", server.label()).into())
}

/// Why a request has no answer of 200.
pub(crate) enum Unanswered {
    /// The writer certainly received nothing, or did nothing: the request may go to another one.
    Unsent(SinkError),
    /// The effect is unknown.
    Unknown(SinkError),
    /// The server rejected the request and did nothing: the request may go to another one, which may reject it too.
    Refused(SinkError),
}

impl Unanswered {
    pub(crate) fn into_error(self) -> SinkError {
        let (Self::Unsent(error) | Self::Unknown(error) | Self::Refused(error)) = self;
        error
    }
}

/// A writer's answer of 200.
pub(crate) enum Parsed<T> {
    /// The value, or why the writer's sink failed.
    Result(Result<T, SinkError>),
    /// The writer's sink or store differs from the bound one.
    Differs(SinkInfo),
}

/// Parses an answer of 200. `None`: no writer answers like this.
fn parse<T: DeserializeOwned>(answer: &[u8]) -> Option<Parsed<T>> {
    match serde_json::from_slice::<Outcome>(answer) {
        Ok(Outcome::Differs { info }) => Some(Parsed::Differs(info)),
        Ok(failed @ Outcome::Failed { .. }) => {
            failed.into_write_outcome(0).err().map(|error| Parsed::Result(Err(error)))
        }
        _ => serde_json::from_slice(answer).ok().map(|value| Parsed::Result(Ok(value))),
    }
}
