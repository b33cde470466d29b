//! One question to a peer: its overview.

use std::time::Duration;

use hyper::header::AUTHORIZATION;
use hyper::{Request, StatusCode};
use net::http_client::{HttpClient, HttpFailure, empty};
use serde::Deserialize;
use serde_json::value::RawValue;
use sink_remote::{Upstream, WriterServer};
use text::escape_control;
use tokio::time::timeout;

use admin_api::paths;

/// A peer that takes longer is shown as silent.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an overview at most: 50 types with 64 sinks have fewer.
const OVERVIEW_BYTES_MAX: usize = 1024 * 1024;

/// What a peer answered last.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) role: Option<String>,
    pub(super) origin: Option<String>,
    /// When, in microseconds since 1970.
    pub(super) seen: Option<i64>,
    /// Why it doesn't answer now.
    pub(super) error: Option<String>,
    pub(super) overview: Option<Box<RawValue>>,
}

/// What every release has in its overview.
#[derive(Deserialize)]
struct Overview {
    role: String,
    origin: Option<String>,
}

/// Asks a peer for its overview.
pub(super) async fn ask(client: &HttpClient, upstream: &Upstream, peer: &WriterServer) -> Answer {
    match timeout(TIMEOUT, overview(client, upstream, peer)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(reason)) => failed(&reason),
        Err(_) => failed(&format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}

fn failed(reason: &str) -> Answer {
    Answer { error: Some(escape_control(reason).into_owned()), ..Answer::default() }
}

async fn overview(client: &HttpClient, upstream: &Upstream, peer: &WriterServer) -> Result<Answer, String> {
    let shown = |failure: HttpFailure| failure.to_string();
    let url = peer.endpoint().url(paths::API_OVERVIEW).map_err(shown)?;
    let request = authorized(Request::get(url), upstream).body(empty()).map_err(|error| error.to_string())?;
    let answer = client.send_to(peer.address(), request).await.map_err(shown)?;
    let status = answer.status();
    let body = answer.bytes(OVERVIEW_BYTES_MAX).await.map_err(shown)?;
    if status != StatusCode::OK {
        return Err(rejected(status));
    }
    // As a value it can't be nested deeper than clients can read.
    serde_json::from_slice::<serde_json::Value>(&body).map_err(|_| not_forebay())?;
    let overview: Box<RawValue> = serde_json::from_slice(&body).map_err(|_| not_forebay())?;
    let Overview { role, origin } = serde_json::from_str(overview.get()).map_err(|_| not_forebay())?;
    let seen = Some(clock::unix_microseconds());
    Ok(Answer { role: Some(role), origin, seen, error: None, overview: Some(overview) })
}

/// Adds the peers' token.
pub(super) fn authorized(request: hyper::http::request::Builder, upstream: &Upstream) -> hyper::http::request::Builder {
    match &upstream.config().token {
        Some(token) => request.header(AUTHORIZATION, token.header()),
        None => request,
    }
}

pub(super) fn rejected(status: StatusCode) -> String {
    let advice = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "set token or token_file of [console.peers] to a token of this peer with the scope `read` or `admin`"
        }
        StatusCode::NOT_FOUND => {
            "check that the address is that of its admin port, and that its release has /api/overview"
        }
        _ => "check that the address is that of its admin port",
    };
    format!("answered {}: {advice}", status.as_u16())
}

fn not_forebay() -> String {
    "its answer is no overview: check that the address is that of its admin port".to_owned()
}
