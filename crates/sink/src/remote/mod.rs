//! The sink of a gateway whose stores are a writer's: each call is a request to a writer, which does the same call on its own sink.
//!
//! The store's cursor stays the truth, and the lane stays the owner of its progress: a writer owns nothing. A lane sticks to a writer and
//! uses another one where that one doesn't answer.

mod config;
pub mod frame;
pub mod protocol;
pub mod reading;
mod servers;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event::Lane;
use event::limits::READ_BYTES_MAX;
use event::read::{Page, Query, ReadError};
use futures_util::future::{Either, select};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use config::{DeliverToken, RemoteConfig, RemoteStore, UnknownStore};

use crate::http_client::{HttpClient, HttpFailure, HttpOptions, empty, full};
use crate::{Batch, Claim, Held, Reason, Report, SinkError, Takeover};
use protocol::{ClaimQuery, HeldAnswer, Outcome, SinkInfo};
use reading::{PageJson, QueryJson};
use servers::Servers;

/// How long a writer may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A writer that works says so each second: one that says nothing for so long has stopped.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Bytes of a page: each byte of a payload may be escaped.
const READ_ANSWER_BYTES_MAX: usize = 2 * READ_BYTES_MAX + 4 * 1024 * 1024;
/// Bytes of an answer that isn't about a batch.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The sink's handle. Cheap to clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    config: RemoteConfig,
    client: HttpClient,
    servers: Servers,
    /// How often the sink was closed: calls in flight end by it.
    closed: watch::Sender<u64>,
    /// What the writer said at the last connection.
    info: std::sync::Mutex<Option<SinkInfo>>,
}

/// Whose lane is looked at: [`crate::Sink::held`] or [`crate::Sink::peek`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    Own,
    Peek,
}

/// A request to be made to whichever writer is asked.
struct Asked<'a> {
    method: Method,
    /// Behind the sink's path.
    path: &'a str,
    lane: Option<&'a Lane>,
    batch: Option<&'a Batch>,
    body: Option<Bytes>,
    answer_max: usize,
}

impl Remote {
    pub(crate) fn new(config: RemoteConfig) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max: SILENCE_MAX,
            waits_for_retry_after: false,
        });
        let servers = Servers::new(config.servers.iter().map(ToString::to_string).collect());
        let shared = Shared { config, client, servers, closed: watch::Sender::new(0), info: std::sync::Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The kind of store that the writer has.
    pub(crate) fn store(&self) -> RemoteStore {
        self.shared.config.store
    }

    pub(crate) fn caution(&self) -> Option<Reason> {
        self.info().as_ref()?.caution.as_deref().map(Into::into)
    }

    fn info(&self) -> std::sync::MutexGuard<'_, Option<SinkInfo>> {
        self.shared.info.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        let asked = Asked { method: Method::GET, path: "", lane: None, batch: None, body: None, answer_max: ANSWER_BYTES_MAX };
        let info: SinkInfo = self.call(&asked).await??;
        let wanted = self.shared.config.store.as_str();
        if info.kind != wanted {
            let sink = &self.shared.config.sink;
            let reason = format!(
                "the writer's sink `{sink}` is of kind {}, this gateway's configuration says store = \"{wanted}\": change one of them",
                info.kind
            );
            return Err(SinkError::Misconfigured(reason.into()));
        }
        if self.shared.config.reads && !info.reads {
            let sink = &self.shared.config.sink;
            let reason = format!("events can't be read back from the writer's sink `{sink}`: set read = false in the gateway's table of it");
            return Err(SinkError::Misconfigured(reason.into()));
        }
        *self.info() = Some(info);
        Ok(())
    }

    pub(crate) async fn held(&self, lane: &Lane, reading: Reading) -> Result<Option<Held>, SinkError> {
        let path = match reading {
            Reading::Own => "/cursor",
            Reading::Peek => "/peek",
        };
        let asked =
            Asked { method: Method::GET, path, lane: Some(lane), batch: None, body: None, answer_max: ANSWER_BYTES_MAX };
        self.fitting(self.call(&asked).await??)
    }

    pub(crate) async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        let body = serde_json::to_vec(&ClaimQuery::new(claim, takeover)).unwrap_or_default();
        let asked = Asked {
            method: Method::POST,
            path: "/claim",
            lane: Some(lane),
            batch: None,
            body: Some(body.into()),
            answer_max: ANSWER_BYTES_MAX,
        };
        self.fitting(self.call(&asked).await??)
    }

    /// What a writer says of a lane, if its kind of store can say that.
    fn fitting(&self, answer: HeldAnswer) -> Result<Option<Held>, SinkError> {
        let held = answer.into_held().ok_or_else(|| odd("a claim that is none"))?;
        if held.is_some() == self.store().traits().fenced {
            return Ok(held);
        }
        Err(odd("a cursor that its kind of store can't have"))
    }

    pub(crate) async fn write(&self, batch: &Batch) -> Result<Report, SinkError> {
        let asked = Asked {
            method: Method::POST,
            path: "",
            lane: Some(batch.lane()),
            batch: Some(batch),
            body: Some(frame::encode(batch)),
            answer_max: protocol::ANSWER_BYTES_MAX,
        };
        match self.call::<Outcome>(&asked).await? {
            Ok(outcome) => outcome.into_report(batch.len()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn can_read(&self) -> bool {
        self.shared.config.reads
    }

    pub(crate) async fn read(&self, query: Query) -> Result<Page, ReadError> {
        let unavailable = |error: SinkError| ReadError::Unavailable(error.to_string().into());
        let body = serde_json::to_vec(&QueryJson::from(&query)).unwrap_or_default();
        let asked = Asked {
            method: Method::POST,
            path: "/read",
            lane: None,
            batch: None,
            body: Some(body.into()),
            answer_max: READ_ANSWER_BYTES_MAX,
        };
        let page: PageJson = self.call(&asked).await.map_err(unavailable)?.map_err(unavailable)?;
        page.into_page()
    }

    /// Ends the calls in flight and closes the connections that wait.
    pub(crate) fn close(&self) {
        self.shared.closed.send_modify(|count| *count += 1);
        self.shared.client.close_idle();
    }

    /// Asks a writer. The inner error is what the writer says its sink failed by.
    async fn call<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let mut closed = self.shared.closed.subscribe();
        let work = pin!(self.ask_each(asked));
        let closed = pin!(closed.changed());
        match select(work, closed).await {
            Either::Left((answer, _)) => Ok(parse(&answer?)),
            Either::Right(_) => Err(SinkError::Unavailable("the sink was closed".into())),
        }
    }

    /// One writer after the other, as long as it is certain that none has got anything.
    async fn ask_each(&self, asked: &Asked<'_>) -> Result<Bytes, SinkError> {
        let nobody = Lane { origin: event::Origin([0; 16]), shard: 0, sink: self.shared.config.sink.as_str().into() };
        let mut last = SinkError::Misconfigured("the upstream names no writer".into());
        for index in self.shared.servers.order(asked.lane.unwrap_or(&nobody)) {
            match self.ask(index, asked).await {
                Ok(answer) => return Ok(answer),
                Err(Unanswered::NextWriter(error)) => last = error,
                Err(Unanswered::Unknown(error)) => return Err(error),
            }
        }
        Err(last)
    }

    async fn ask(&self, index: usize, asked: &Asked<'_>) -> Result<Bytes, Unanswered> {
        let Shared { client, servers, .. } = &*self.shared;
        let request = self.request(index, asked).map_err(Unanswered::Unknown)?;
        let failed = |failure: HttpFailure| {
            servers.has_failed(index);
            let error = if failure.is_misconfigured() { SinkError::Misconfigured } else { SinkError::Unavailable };
            let error = error(format!("writer {failure}").into());
            if failure.is_unsent() { Unanswered::NextWriter(error) } else { Unanswered::Unknown(error) }
        };
        let answer = client.send(request).await.map_err(failed)?;
        let is_draining = answer.headers().contains_key(protocol::DRAINING);
        let status = answer.status();
        let body = answer.bytes(asked.answer_max).await.map_err(failed)?;
        match status {
            StatusCode::OK => {
                if is_draining { servers.has_failed(index) } else { servers.is_well(index) }
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

    fn request(&self, index: usize, asked: &Asked<'_>) -> Result<Request<crate::http_client::Body>, SinkError> {
        let RemoteConfig { servers, sink, token, .. } = &self.shared.config;
        let wrong = |what: &str| SinkError::Misconfigured(format!("a request to the writer can't be made: {what}").into());
        let server = servers.get(index).ok_or_else(|| wrong("there is no such writer"))?;
        let url = server.url(&format!("{}/{sink}{}", protocol::PATH, asked.path)).map_err(|error| wrong(&error.to_string()))?;
        let mut request = Request::builder().method(asked.method.clone()).uri(url);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token.header());
        }
        if let Some(lane) = asked.lane {
            request = request.header(protocol::LANE, protocol::lane_text(lane));
        }
        if let Some(batch) = asked.batch {
            request = request.header(protocol::POSITIONS, format!("{}-{}", batch.first(), batch.last()));
            if let Some(claim) = batch.claim() {
                request = request.header(protocol::CLAIM, claim.to_string());
            }
        }
        let body = match &asked.body {
            Some(frame) => {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(protocol::CONTENT_TYPE));
                full(frame.clone())
            }
            None => empty(),
        };
        request.body(body).map_err(|error| wrong(&error.to_string()))
    }

    /// What a writer said by a status other than 200.
    fn words(&self, index: usize, status: StatusCode, body: &[u8]) -> Reason {
        #[derive(serde::Deserialize)]
        struct Problem {
            detail: String,
        }
        let server = self.shared.config.servers.get(index).map(ToString::to_string).unwrap_or_default();
        let detail = serde_json::from_slice::<Problem>(body).map(|problem| problem.detail);
        let detail = detail.unwrap_or_else(|_| "no Forebay writer answers like this: look at the address".into());
        format!("writer {server} answers {status}: {}", crate::http_client::shortened(&detail)).into()
    }
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

fn odd(what: &str) -> SinkError {
    SinkError::Unavailable(format!("the writer answers {what}: run the same release of gateway and writer").into())
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.shared.config).finish()
    }
}
