//! Requests to the writers of an upstream: which one is asked, and what its answer says.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use futures_util::future::{Either, select};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Builder;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::protocol::{self, Outcome};
use super::servers::Servers;
use super::{ANSWER_BYTES_MAX, RemoteConfig};
use crate::http_client::{Answer, Body, HttpClient, HttpFailure, HttpOptions, empty, full, shortened};
use crate::{Batch, Reason, SinkError};

/// How long a writer may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A writer that works says so each second: one that says nothing for so long has stopped.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// A request to be made to whichever writer is asked.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// Behind the sink's path.
    pub(super) path: &'a str,
    pub(super) lane: Option<&'a Lane>,
    pub(super) batch: Option<&'a Batch>,
    pub(super) body: Option<Bytes>,
    pub(super) answer_max: usize,
}

/// Makes a request to the writer of a number.
type RequestTo<'a> = dyn Fn(usize) -> Result<Request<Body>, SinkError> + Send + Sync + 'a;

/// Connections to the writers. Its clones share what is known of the writers; connections belong to the thread that uses them.
pub(crate) struct Caller {
    config: RemoteConfig,
    client: HttpClient,
    servers: Arc<Servers>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

impl Caller {
    /// Connects to the writers that `servers` knows, which are those of `config`.
    pub(crate) fn new(config: RemoteConfig, servers: Arc<Servers>) -> Self {
        Self::waiting(config, servers, SILENCE_MAX)
    }

    /// The same for requests during which a writer may say nothing for so long.
    pub(crate) fn waiting(config: RemoteConfig, servers: Arc<Servers>, silence_max: Duration) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max,
            waits_for_retry_after: false,
        });
        Self { config, client, servers, closed: watch::Sender::new(0) }
    }

    pub(crate) const fn config(&self) -> &RemoteConfig {
        &self.config
    }

    pub(crate) const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Ends the calls in flight and closes the connections that wait.
    pub(super) fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        self.client.close_idle();
    }

    /// Asks a writer. The inner error is what the writer says its sink failed by.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        self.exchange(call.lane, call.answer_max, &|index| self.request(index, call)).await
    }

    /// Has a writer store bytes, which `body` gives from the first on for each writer that is asked.
    pub(crate) async fn upload(
        &self,
        lane: &Lane,
        (path, headers): (&str, &HeaderMap),
        body: &(dyn Fn() -> Body + Send + Sync),
    ) -> Result<Outcome, SinkError> {
        let request = |index| {
            let mut request = self.head(index, Method::PUT, path)?.header(protocol::LANE, protocol::lane_text(lane));
            request.headers_mut().map(|all| all.extend(headers.clone()));
            finished(request, body())
        };
        self.exchange(Some(lane), ANSWER_BYTES_MAX, &request).await?
    }

    /// Asks a writer for bytes. An answer of any status that isn't a writer's own refusal is given as it comes.
    pub(crate) async fn download(&self, path: &str, headers: &HeaderMap) -> Result<Answer, SinkError> {
        let mut last = no_writer();
        for index in self.order(None) {
            match self.download_from(index, path, headers).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::NextWriter(error)) => last = error,
                Err(Unanswered::Unknown(error)) => return Err(error),
            }
        }
        Err(last)
    }

    async fn download_from(&self, index: usize, path: &str, headers: &HeaderMap) -> Result<Answer, Unanswered> {
        let mut request = self.head(index, Method::GET, path).map_err(Unanswered::Unknown)?;
        request.headers_mut().map(|all| all.extend(headers.clone()));
        let answer = self.send(index, finished(request, empty()).map_err(Unanswered::Unknown)?).await?;
        let is_refused = answer.headers().get(CONTENT_TYPE).is_some_and(|value| value == protocol::PROBLEM);
        if !is_refused {
            return Ok(answer);
        }
        let status = answer.status();
        let body = answer.bytes(ANSWER_BYTES_MAX).await.map_err(|failure| self.failed(index, &failure))?;
        Err(self.refused(index, status, &body))
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        lane: Option<&Lane>,
        answer_max: usize,
        request: &RequestTo<'_>,
    ) -> Result<Result<T, SinkError>, SinkError> {
        let mut closed = self.closed.subscribe();
        let work = pin!(self.ask_each(lane, answer_max, request));
        let closed = pin!(closed.changed());
        match select(work, closed).await {
            Either::Left((answer, _)) => Ok(parse(&answer?)),
            Either::Right(_) => Err(SinkError::Unavailable("the sink was closed".into())),
        }
    }

    /// One writer after the other, as long as it is certain that none has got anything.
    async fn ask_each(
        &self,
        lane: Option<&Lane>,
        answer_max: usize,
        request: &RequestTo<'_>,
    ) -> Result<Bytes, SinkError> {
        let mut last = no_writer();
        for index in self.order(lane) {
            match self.ask(index, request(index)?, answer_max).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::NextWriter(error)) => last = error,
                Err(Unanswered::Unknown(error)) => return Err(error),
            }
        }
        Err(last)
    }

    /// The order in which a lane, or what is of no lane, tries the writers.
    fn order(&self, lane: Option<&Lane>) -> Vec<usize> {
        let nobody = Lane { origin: event::Origin([0; 16]), shard: 0, sink: self.config.sink.as_str().into() };
        self.servers.order(lane.unwrap_or(&nobody))
    }

    async fn ask(&self, index: usize, request: Request<Body>, answer_max: usize) -> Result<Bytes, Unanswered> {
        let answer = self.send(index, request).await?;
        let is_draining = answer.headers().contains_key(protocol::DRAINING);
        let status = answer.status();
        // A writer whose store works sends a newline each second.
        let body = answer.without_pace().bytes(answer_max).await.map_err(|failure| self.failed(index, &failure))?;
        if status != StatusCode::OK {
            return Err(self.refused(index, status, &body));
        }
        if is_draining {
            self.servers.has_failed(index)
        } else {
            self.servers.is_well(index)
        }
        Ok(body)
    }

    async fn send(&self, index: usize, request: Request<Body>) -> Result<Answer, Unanswered> {
        self.client.send(request).await.map_err(|failure| self.failed(index, &failure))
    }

    fn failed(&self, index: usize, failure: &HttpFailure) -> Unanswered {
        self.servers.has_failed(index);
        let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable };
        let error = error(format!("writer {failure}").into());
        if failure.is_unsent() { Unanswered::NextWriter(error) } else { Unanswered::Unknown(error) }
    }

    fn refused(&self, index: usize, status: StatusCode, body: &[u8]) -> Unanswered {
        let words = self.words(index, status, body);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            self.servers.has_failed(index);
            return Unanswered::NextWriter(SinkError::Unavailable(words));
        }
        // The writer understood, and nothing was stored: another one would most likely say the same.
        Unanswered::Unknown(SinkError::Misconfigured(words))
    }

    /// The head of a request to one of the writers, with `path` behind that of the sink.
    fn head(&self, index: usize, method: Method, path: &str) -> Result<Builder, SinkError> {
        let RemoteConfig { servers, sink, token, .. } = &self.config;
        let server = servers.get(index).ok_or_else(|| wrong("there is no such writer"))?;
        let url = server.url(&format!("{}/{sink}{path}", protocol::PATH)).map_err(|error| wrong(&error.to_string()))?;
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token.header());
        }
        Ok(request)
    }

    fn request(&self, index: usize, call: &Call<'_>) -> Result<Request<Body>, SinkError> {
        let mut request = self.head(index, call.method.clone(), call.path)?;
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
        let body = match &call.body {
            Some(frame) => {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(protocol::CONTENT_TYPE));
                full(frame.clone())
            }
            None => empty(),
        };
        finished(request, body)
    }

    /// What a writer said by a status other than 200.
    fn words(&self, index: usize, status: StatusCode, body: &[u8]) -> Reason {
        #[derive(serde::Deserialize)]
        struct Problem {
            detail: String,
        }
        let server = self.config.servers.get(index).map(ToString::to_string).unwrap_or_default();
        let detail = serde_json::from_slice::<Problem>(body).map(|problem| problem.detail);
        let detail = detail.unwrap_or_else(|_| "no Forebay writer answers like this: look at the address".into());
        format!("writer {server} answers {status}: {}", shortened(&detail)).into()
    }
}

fn no_writer() -> SinkError {
    SinkError::Misconfigured("the upstream names no writer".into())
}

fn wrong(what: &str) -> SinkError {
    SinkError::Misconfigured(format!("a request to the writer can't be made: {what}").into())
}

fn finished(request: Builder, body: Body) -> Result<Request<Body>, SinkError> {
    request.body(body).map_err(|error| wrong(&error.to_string()))
}

/// Why a writer gave no answer.
enum Unanswered {
    /// It certainly got nothing, or did nothing.
    NextWriter(SinkError),
    /// What it did isn't known, or asking another one is of no use.
    Unknown(SinkError),
}

/// What an answer of 200 says: what was asked for, or why the sink failed.
fn parse<T: DeserializeOwned>(answer: &[u8]) -> Result<T, SinkError> {
    if let Ok(Outcome::Failed { misconfigured, reason }) = serde_json::from_slice(answer) {
        let error = if misconfigured { SinkError::Misconfigured } else { SinkError::Unavailable };
        return Err(error(reason.into()));
    }
    serde_json::from_slice(answer).map_err(|_| odd("something else than was asked for"))
}

pub(super) fn odd(what: &str) -> SinkError {
    SinkError::Unavailable(format!("the writer answers {what}: run the same release of gateway and writer").into())
}
