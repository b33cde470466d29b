//! Requests to the writers of an upstream: which one is asked, and what its answer says.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use futures_util::future::{Either, join_all, select};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::RemoteConfig;
use super::binding::Binding;
use super::protocol::{self, Outcome, SinkInfo};
use super::servers::Servers;
use crate::http_client::{Body, HttpClient, HttpFailure, HttpOptions, empty, full, shortened};
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

/// Connections to the writers. Its clones share what is known of the writers; connections belong to the thread that uses them.
pub(super) struct Caller {
    config: RemoteConfig,
    client: HttpClient,
    servers: Arc<Servers>,
    binding: Arc<Binding>,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
}

impl Caller {
    /// Connects to the writers that `servers` knows, which are those of `config`.
    pub(super) fn new(config: RemoteConfig, servers: Arc<Servers>, binding: Arc<Binding>) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max: SILENCE_MAX,
            waits_for_retry_after: false,
        });
        Self { config, client, servers, binding, closed: watch::Sender::new(0) }
    }

    pub(super) const fn config(&self) -> &RemoteConfig {
        &self.config
    }

    pub(super) const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    pub(super) const fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    /// Ends the calls in flight and closes the connections that wait.
    pub(super) fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        self.client.close_idle();
    }

    /// Asks a writer. The inner error is what the writer says its sink failed by.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let mut closed = self.closed.subscribe();
        let work = pin!(self.ask_each(call));
        let closed = pin!(closed.changed());
        match select(work, closed).await {
            Either::Left((answer, _)) => Ok(parse(&answer?)),
            Either::Right(_) => Err(SinkError::Unavailable("the sink was closed".into())),
        }
    }

    /// One writer after the other, as long as it is certain that none has got anything.
    async fn ask_each(&self, call: &Call<'_>) -> Result<Bytes, SinkError> {
        let nobody = Lane { origin: event::Origin([0; 16]), shard: 0, sink: self.config.sink.as_str().into() };
        let mut last = SinkError::Misconfigured("the upstream names no writer".into());
        let mut order = self.servers.order(call.lane.unwrap_or(&nobody));
        order.sort_by_key(|index| self.binding.is_refused(&self.name(*index)));
        for index in order {
            match self.ask(index, call).await {
                Ok(answer) => match self.binding.refusal(&self.name(index), &answer) {
                    Some(error) => last = error,
                    None => return Ok(answer),
                },
                Err(Unanswered::NextWriter(error)) => last = error,
                Err(Unanswered::Unknown(error)) => return Err(error),
            }
        }
        Err(last)
    }

    /// Asks every writer at once what its sink is.
    pub(super) async fn survey(&self, call: &Call<'_>) -> Vec<(String, Result<SinkInfo, SinkError>)> {
        let ask = |index| async move {
            let answer = self.ask(index, call).await.map_err(Unanswered::into_error);
            let info = answer.and_then(|answer| protocol::differing(&answer).map_or_else(|| parse(&answer), Ok));
            (self.name(index), info)
        };
        join_all((0..self.config.servers.len()).map(ask)).await
    }

    async fn ask(&self, index: usize, call: &Call<'_>) -> Result<Bytes, Unanswered> {
        let Self { client, servers, .. } = self;
        let request = self.request(index, call).map_err(Unanswered::Unknown)?;
        let failed = |failure: HttpFailure| {
            servers.has_failed(index);
            let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable };
            let error = error(format!("writer {failure}").into());
            if failure.is_unsent() { Unanswered::NextWriter(error) } else { Unanswered::Unknown(error) }
        };
        let answer = client.send(request).await.map_err(failed)?;
        let is_draining = answer.headers().contains_key(protocol::DRAINING);
        let status = answer.status();
        let body = answer.bytes(call.answer_max).await.map_err(failed)?;
        match status {
            StatusCode::OK => {
                if is_draining {
                    servers.has_failed(index)
                } else {
                    servers.is_well(index)
                }
                Ok(body)
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                servers.has_failed(index);
                Err(Unanswered::NextWriter(SinkError::Unavailable(self.words(index, status, &body))))
            }
            // The writer understood, and nothing was stored: another one would most likely say the same.
            _ => Err(Unanswered::Unknown(SinkError::Misconfigured(self.words(index, status, &body)))),
        }
    }

    fn request(&self, index: usize, call: &Call<'_>) -> Result<Request<Body>, SinkError> {
        let RemoteConfig { servers, sink, token, .. } = &self.config;
        let wrong =
            |what: &str| SinkError::Misconfigured(format!("a request to the writer can't be made: {what}").into());
        let server = servers.get(index).ok_or_else(|| wrong("there is no such writer"))?;
        let url = server
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
        request.body(body).map_err(|error| wrong(&error.to_string()))
    }

    fn name(&self, index: usize) -> String {
        self.config.servers.get(index).map(ToString::to_string).unwrap_or_default()
    }

    /// What a writer said by a status other than 200.
    fn words(&self, index: usize, status: StatusCode, body: &[u8]) -> Reason {
        #[derive(serde::Deserialize)]
        struct Problem {
            detail: String,
        }
        let server = self.name(index);
        let detail = serde_json::from_slice::<Problem>(body).map(|problem| problem.detail);
        let detail = detail.unwrap_or_else(|_| "no Forebay writer answers like this: look at the address".into());
        format!("writer {server} answers {status}: {}", shortened(&detail)).into()
    }
}

/// Why a writer gave no answer.
enum Unanswered {
    /// It certainly got nothing, or did nothing.
    NextWriter(SinkError),
    /// What it did isn't known, or asking another one is of no use.
    Unknown(SinkError),
}

impl Unanswered {
    fn into_error(self) -> SinkError {
        let (Self::NextWriter(error) | Self::Unknown(error)) = self;
        error
    }
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
