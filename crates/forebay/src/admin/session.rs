//! `/api/session`: sessions of browsers.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/session` | the sender, and what it may do |
//! | `POST /api/session` with a bearer token | opens a session: one half is a cookie, the other one is `check` |
//! | `DELETE /api/session` | ends the session |

use access::HALF_BYTES;
use admin_api::session::SessionJson;
use hyper::header::{HeaderValue, ORIGIN, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use text::rfc3339;

use super::auth::{AdminAuth, Pass, now};
use super::response::{json, not_allowed, problem};
use super::{AdminBody, is_read};

/// Answers an admitted request.
pub(super) fn respond<B>(request: &Request<B>, auth: &AdminAuth, pass: &Pass) -> Response<AdminBody> {
    match request.method() {
        method if is_read(method) => shown(auth, pass).into_response(),
        &Method::POST => open(request.headers(), auth, pass),
        &Method::DELETE => close(auth, pass),
        _ => not_allowed("GET, HEAD, POST, DELETE").into_response(),
    }
}

fn shown(auth: &AdminAuth, pass: &Pass) -> super::AdminResponse {
    json(StatusCode::OK, &of(auth, pass))
}

fn of(auth: &AdminAuth, pass: &Pass) -> SessionJson {
    let (name, expires) = match pass {
        Pass::Open => (None, None),
        Pass::Bearer(token) => (Some(token.name.to_string()), None),
        Pass::Session(_, session) => (Some(session.name.to_string()), Some(session.expires)),
    };
    let expires = expires.map(rfc3339::format);
    SessionJson { name, may: pass.may(), needs_token: auth.needs_token(), check: None, expires }
}

/// Opens a session for the owner of a bearer token. Without tokens none is needed.
fn open(headers: &HeaderMap, auth: &AdminAuth, pass: &Pass) -> Response<AdminBody> {
    let Pass::Bearer(token) = pass else { return shown(auth, pass).into_response() };
    let mut halves = [[0; HALF_BYTES]; 2];
    if let Err(error) = halves.iter_mut().try_for_each(|half| getrandom::fill(half)) {
        let detail = format!("the system has no random numbers: {error}. Retry later");
        return problem(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).into_response();
    }
    let opened = auth.sessions().open(token, halves, now());
    tracing::info!(by = %pass.caller(), "session opened");
    let expires = Some(rfc3339::format(opened.session.expires));
    let answer = SessionJson { check: Some(opened.check), expires, ..of(auth, pass) };
    let mut response = json(StatusCode::OK, &answer).into_response();
    set_cookie(&mut response, auth, &opened.cookie, if is_secure(headers, auth) { "; Secure" } else { "" });
    response
}

fn close(auth: &AdminAuth, pass: &Pass) -> Response<AdminBody> {
    if let Pass::Session(id, _) = pass {
        auth.sessions().end(*id);
        tracing::info!(by = %pass.caller(), "session ended by a logout");
    }
    let mut response = json(StatusCode::OK, &SessionJson { needs_token: auth.needs_token(), ..SessionJson::default() })
        .into_response();
    set_cookie(&mut response, auth, "", "; Max-Age=0");
    response
}

/// Whether the page came by TLS: from this port, or from a proxy. A browser sends the origin of the page with each `POST`, so a proxy needs no
/// setting for it.
fn is_secure(headers: &HeaderMap, auth: &AdminAuth) -> bool {
    let is_https = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https://");
    auth.settings().browsers.has_tls || headers.get(ORIGIN).is_some_and(is_https)
}

fn set_cookie(response: &mut Response<AdminBody>, auth: &AdminAuth, value: &str, more: &str) {
    let cookie = format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{more}", auth.cookie());
    // It has only visible ASCII.
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}
