//! Passes a request on to a peer. The caller's scope was checked as for a request to this process; the peer gets the peers' token, so a
//! client may do what both allow.

use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use net::http_client::{HttpResponse, empty, full};
use text::{escape_control, percent};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use super::ask::{authorized, rejected};
use super::{Fleet, PASSED_MAX, Peer};
use crate::admin::body::{AdminBody, Parts};
use crate::admin::payload::Payloads;
use crate::admin::response::{AdminResponse, problem};
use admin_api::paths;

/// Headers of a request that a peer gets too.
const PASSED: [&str; 3] = ["content-type", "prefer", "accept"];
/// Bytes of an answer that is read before it is passed on. A longer one is passed on as it arrives.
const WHOLE_BYTES_MAX: usize = 256 * 1024;
/// How long a peer may take for such an answer.
const WHOLE_MAX: Duration = Duration::from_secs(30);
/// Bytes of an answer that isn't a stream of lines: four pages of events.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a peer may take for such an answer: a profile takes a minute.
const ANSWER_MAX: Duration = Duration::from_mins(2);
/// Parts of a body that wait for the client.
const WAITING_MAX: usize = 4;
/// The type of streams.
const LINES: &str = "application/x-ndjson";
/// The types of the admin port's answers. Another one is passed as bytes, so no browser interprets it.
const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "application/problem+json",
    LINES,
    "text/plain; charset=utf-8",
    "image/svg+xml",
    "application/gzip",
];

/// The peer's name and the path there, of a path after [`PEERS`](paths::PEERS): `/NAME/api/…`.
pub(super) fn split(rest: &str) -> Option<(String, &str)> {
    let rest = rest.strip_prefix('/')?;
    let at = rest.find('/')?;
    let (name, path) = (percent::decode(&rest[..at])?, &rest[at..]);
    let is_known = path.starts_with("/api/") || path.starts_with("/debug/");
    let is_own = path.starts_with(paths::PEERS) || path.starts_with(paths::SESSION);
    (is_known && !is_own && path[1..].split('/').all(is_plain)).then_some((name, path))
}

/// Whether no proxy before the peer can take a part of a path for another path.
fn is_plain(part: &str) -> bool {
    let decoded = percent::decode(part);
    decoded.is_some_and(|part| {
        !matches!(&*part, "" | "." | "..") && !part.contains(['/', '\\']) && !part.contains(char::is_control)
    })
}

impl Fleet {
    /// The peer's answer to the request, as it arrives.
    pub(super) async fn pass(&self, name: &str, path: &str, request: &mut Request<Incoming>) -> AdminResponse {
        self.follow().await;
        let Some(peer) = self.state().peers().into_iter().find(|peer| peer.name() == name) else {
            let detail = "there is no such peer: check [console.peers], and the names in /api/peers";
            return problem(StatusCode::NOT_FOUND, "peer", detail.to_owned());
        };
        let (payloads, places) = {
            let state = self.state();
            (state.payloads.clone(), state.places.clone())
        };
        let Ok(place) = places.0.try_acquire_owned() else {
            let detail = format!("{PASSED_MAX} requests to peers are open: close a page, or retry later");
            return problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
        };
        match forward(&peer, path, request, &payloads).await {
            Ok(answer) => passed(answer, request.method() == Method::HEAD, place).await,
            Err(refused) => refused,
        }
    }
}

async fn forward(
    peer: &Peer,
    path: &str,
    request: &mut Request<Incoming>,
    payloads: &Payloads,
) -> Result<HttpResponse, AdminResponse> {
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let url = peer.server.endpoint().url(&format!("{path}{query}"));
    let url = url.map_err(|failure| unreachable(&failure.to_string()))?;
    let mut passed = authorized(Request::builder().method(request.method()).uri(url), &peer.source.upstream);
    for name in PASSED {
        if let Some(value) = request.headers().get(name) {
            passed = passed.header(HeaderName::from_static(name), value);
        }
    }
    let has_body = !matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE);
    let body = if has_body { full(payloads.read(request).await?.0) } else { empty() };
    let passed = passed.body(body).map_err(|error| unreachable(&error.to_string()))?;
    let answered = peer.source.client.send_to(peer.server.address(), passed).await;
    answered.map(HttpResponse::at_any_rate).map_err(|failure| unreachable(&failure.to_string()))
}

/// A short answer as a whole, others as they arrive. The place is free after the last byte.
async fn passed(answer: HttpResponse, is_head: bool, place: OwnedSemaphorePermit) -> AdminResponse {
    let status = answer.status();
    if status == StatusCode::UNAUTHORIZED || status.is_redirection() {
        // The page would ask its viewer for a token of this process.
        return unreachable(&rejected(status));
    }
    let content_type = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let known = CONTENT_TYPES.into_iter().find(|known| content_type == Some(known.as_bytes()));
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let body = match length {
        _ if is_head => AdminBody::Whole(None),
        Some(length) if length <= WHOLE_BYTES_MAX => match timeout(WHOLE_MAX, answer.bytes(WHOLE_BYTES_MAX)).await {
            Ok(Ok(bytes)) => bytes.into(),
            Ok(Err(failure)) => return unreachable(&failure.to_string()),
            Err(_) => return unreachable(&format!("no whole answer within {} s", WHOLE_MAX.as_secs())),
        },
        _ => AdminBody::Stream(stream(answer, known == Some(LINES), place)),
    };
    AdminResponse { content_type: known.unwrap_or("application/octet-stream"), ..AdminResponse::text(status, body) }
}

/// The parts of a body, until either side ends. Only a stream of lines has no end. If the peer's answer is incomplete, too
/// long or too slow, the client gets an incomplete one too.
fn stream(mut answer: HttpResponse, is_endless: bool, place: OwnedSemaphorePermit) -> Parts {
    let (sender, receiver) = mpsc::channel::<Bytes>(WAITING_MAX);
    let (end, ended) = oneshot::channel();
    let passing = async move {
        let _place = place;
        let mut left = if is_endless { u64::MAX } else { BYTES_MAX };
        loop {
            let chunk = tokio::select! {
                chunk = answer.chunk() => chunk,
                () = sender.closed() => return,
            };
            let chunk = match chunk {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    // The client may be gone.
                    let _ = end.send(());
                    return;
                }
                Err(_) => return,
            };
            left = left.saturating_sub(chunk.len() as u64);
            if left == 0 || sender.send(chunk).await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(async move {
        if is_endless {
            passing.await;
        } else {
            // After the timeout `end` is dropped.
            let _ = timeout(ANSWER_MAX, passing).await;
        }
    });
    Parts::until(receiver, ended)
}

fn unreachable(reason: &str) -> AdminResponse {
    let detail = format!("the peer doesn't answer: {}", escape_control(reason));
    problem(StatusCode::BAD_GATEWAY, "peer", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_peer_has_name_and_known_path() {
        assert_eq!(split("/w-1:9001/api/overview"), Some(("w-1:9001".into(), "/api/overview")));
        assert_eq!(split("/%5Bfd00::1%5D:9001/debug/memory"), Some(("[fd00::1]:9001".into(), "/debug/memory")));
        assert_eq!(split("/w/api/try/Order%20Completed"), Some(("w".into(), "/api/try/Order%20Completed")));
        for rest in [
            "",
            "/",
            "/w",
            "/w/",
            "/w/metrics",
            "/w/api",
            "/w/api/peers",
            "/w/api/peers/x/api/status",
            "/w/api/session",
            "/w/api/../metrics",
            "/w/api/%2e%2e/x",
            "/w/api/try/..\\..\\reload",
            "/w/api//dead",
            "/w/api/./dead",
            "/w/api/a%2Fb",
            "/%ff/api/status",
        ] {
            assert_eq!(split(rest), None, "{rest}");
        }
    }
}
