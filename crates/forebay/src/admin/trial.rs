//! `/api/try`: one payload through the schema and the steps of its type, as `forebay try` takes it. Nothing of it is kept or counted.
//!
//! | request | answer |
//! |---|---|
//! | `POST /api/try/TYPE?client=&source=&received=&key=` | what each stage does, how long it takes, and what would be stored or refused |

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use event::limits::EVENT_BYTES_MAX;
use event::{percent, rfc3339};
use eventlog::unix_microseconds;
use gateway::Around;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{HeaderMap, Method, Request, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{Answer, json, not_allowed, problem};
use crate::trial::{Bench, TrialJson};
use crate::type_board::TypeBoard;

/// The beginning of all paths here.
pub(super) const PATH: &str = "/api/try";
/// Payloads that are in memory at a time; more wait.
const PLACES: usize = 8;
/// A client gets this long for its payload.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a payload that is too large so much more is read, so that its client comes to read why it is refused.
const UNREAD_MAX: usize = 8 * EVENT_BYTES_MAX;

/// Takes trials: their work is done beside the thread of the admin port, one after the other, so that neither other requests nor
/// the shards wait for it.
pub(crate) struct Trials {
    types: TypeBoard,
    places: Semaphore,
    turns: Arc<Semaphore>,
}

impl Trials {
    pub(crate) fn new(types: TypeBoard) -> Self {
        Self { types, places: Semaphore::new(PLACES), turns: Arc::new(Semaphore::new(1)) }
    }

    /// Answers a request whose path goes on with `rest` behind [`PATH`].
    pub(super) async fn respond(&self, rest: &str, request: &mut Request<Incoming>) -> Answer {
        if *request.method() != Method::POST {
            return not_allowed("POST");
        }
        self.answer(rest, request).await.unwrap_or_else(|refused| refused)
    }

    async fn answer(&self, rest: &str, request: &mut Request<Incoming>) -> Result<Answer, Answer> {
        let name = rest.strip_prefix('/').filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| problem(StatusCode::NOT_FOUND, "path", "say of which type it is: /api/try/TYPE".into()))?;
        let name = percent::decode(name).unwrap_or_else(|| name.to_owned());
        let around = around(request.uri().query().unwrap_or_default(), request.headers())
            .map_err(|detail| problem(StatusCode::BAD_REQUEST, "query", detail))?;
        let (name, config) = self
            .types
            .find(&name)
            .map_err(|unknown| problem(StatusCode::NOT_FOUND, "unknown_type", unknown.to_string()))?;
        if request.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let detail = "a payload to be tried comes as it is: without Content-Encoding";
            return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding", detail.into()));
        }
        // Held to the end. Who has the last one is cut off by the time for payloads.
        let _place = self.places.acquire().await.map_err(|_| stopping())?;
        let bytes = payload(request.body_mut()).await?;
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| stopping())?;
        let work = move || {
            // Held until it is done, though its client may have left.
            let _turn = turn;
            let trial = Bench::new(name, &config).run(&bytes, &around);
            json(StatusCode::OK, &TrialJson::of(&trial))
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| stopping())
    }
}

fn stopping() -> Answer {
    problem(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping".into())
}

/// A whole payload.
async fn payload(body: &mut Incoming) -> Result<Vec<u8>, Answer> {
    let late = || {
        let detail = format!("the payload has to be there within {} seconds", BODY_TIMEOUT.as_secs());
        problem(StatusCode::REQUEST_TIMEOUT, "timeout", detail)
    };
    timeout(BODY_TIMEOUT, read(body)).await.unwrap_or_else(|_| Err(late()))
}

async fn read(body: &mut Incoming) -> Result<Vec<u8>, Answer> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| problem(StatusCode::BAD_REQUEST, "bad_request", error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= EVENT_BYTES_MAX {
            bytes.extend_from_slice(&data);
        } else if length > UNREAD_MAX {
            break;
        }
    }
    if length <= EVENT_BYTES_MAX {
        return Ok(bytes);
    }
    let detail = format!("an event has at most {EVENT_BYTES_MAX} bytes");
    Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail))
}

/// What stands around the event: what the query says, and the headers of this request.
fn around(query: &str, headers: &HeaderMap) -> Result<Around, String> {
    let client = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let received_at = unix_microseconds();
    let mut around = Around { received_at, client, headers: texts(headers), ..Around::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent::decode(value).ok_or_else(|| format!("{key} isn't percent-encoded UTF-8"))?;
        match key {
            "client" => around.client = Some(value.parse().map_err(|_| format!("client={value}: wanted an address"))?),
            "source" => around.source = value,
            "received" => {
                around.received_at = rfc3339::parse(&value).map_err(|why| format!("received={value}: {why}"))?;
            }
            "key" => around.key = value,
            _ => return Err(format!("{key} is unknown: there are client, source, received and key")),
        }
    }
    Ok(around)
}

/// Headers as steps see them: several of a name are one with commas. What lets a sender in no step may ask for.
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let joined = |name| {
        let values = headers.get_all(name).iter().filter_map(|value| str::from_utf8(value.as_bytes()).ok());
        values.collect::<Vec<_>>().join(", ")
    };
    headers.keys().map(|name| (name.as_str().to_owned(), joined(name))).collect()
}
