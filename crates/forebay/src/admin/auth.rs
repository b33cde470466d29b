//! Authenticates requests on an admin port, that of a writer too. Until the operator creates a token with the scope `admin`, every client on
//! loopback is let in; from then on only clients with such a token, or with a session that one has opened. After the last such token is
//! revoked, no client is let in.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use access::{Demand, Denied, Digest, Now, OpenSession, Scope, SessionId, Sessions, ShownToken, Token, Tokens};
use eventlog::unix_microseconds;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::browser_rules::BrowserRules;
use super::halves::Halves;
use super::{AdminBody, response};
use crate::caller::Caller;

/// Lets requests in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AdminAuth(Arc<Gate>);

struct Gate {
    tokens: Arc<Tokens>,
    sessions: Sessions,
    is_reachable: bool,
    cookie: String,
    settings: Mutex<Arc<AccessSettings>>,
}

/// The settings of access, which a reload may change.
#[derive(Clone, Debug)]
pub(crate) struct AccessSettings {
    pub(crate) browsers: BrowserRules,
    /// Whether the port serves the console.
    pub(crate) has_console: bool,
}

impl AccessSettings {
    /// Those of a configuration.
    pub(crate) fn of(admin: &config::Admin, console: &config::Console) -> Self {
        let browsers = BrowserRules { has_tls: admin.tls.is_some(), allowed_hosts: admin.allowed_hosts.clone() };
        Self { browsers, has_console: console.is_enabled }
    }
}

pub(super) type Refused = Box<Response<AdminBody>>;

/// What let a request in.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    /// No token is needed.
    Open,
    /// A bearer token.
    Bearer(Box<Token>),
    /// A session, which a token has opened.
    Session(SessionId, OpenSession),
}

impl Pass {
    pub(super) fn caller(&self) -> Caller {
        match self {
            Self::Open => Caller::Loopback,
            Self::Bearer(token) => Caller::Token(token.name.clone()),
            Self::Session(_, session) => Caller::Token(session.name.clone()),
        }
    }

    fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Open => true,
            Self::Bearer(token) => token.scopes.has(scope),
            Self::Session(_, session) => session.scopes.has(scope),
        }
    }

    /// The scopes of the admin port that it has. `admin` includes `read`.
    pub(super) fn may(&self) -> Vec<&'static str> {
        let mut may = vec![Scope::Read.as_str()];
        if self.has(Scope::Admin) {
            may.push(Scope::Admin.as_str());
        }
        may
    }
}

impl AdminAuth {
    /// For a port that is reachable from elsewhere or isn't. Cookies are called by its number.
    pub(crate) fn new(tokens: Arc<Tokens>, is_reachable: bool, port: u16, settings: AccessSettings) -> Self {
        Self(Arc::new(Gate {
            tokens,
            sessions: Sessions::default(),
            is_reachable,
            cookie: format!("forebay_{port}"),
            settings: Mutex::new(Arc::new(settings)),
        }))
    }

    /// Replaces the settings.
    pub(crate) fn show(&self, settings: AccessSettings) {
        *self.0.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    pub(super) fn settings(&self) -> Arc<AccessSettings> {
        self.0.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether requests need a token now.
    pub(super) fn needs_token(&self) -> bool {
        self.0.is_reachable || self.0.tokens.current().made().has(Scope::Admin)
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// The name of the cookie with a session's half.
    pub(super) fn cookie(&self) -> &str {
        &self.0.cookie
    }

    /// What lets a request in. No page of another origin has a token, so a request with one may call the port by any name.
    ///
    /// # Errors
    /// The answer to a request that isn't admitted. It needs a token or session with another scope; or a page of another origin may have
    /// sent it.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Result<Pass, Refused> {
        let (headers, browsers) = (request.headers(), &self.settings().browsers);
        browsers.check_origin(headers).map_err(cross_origin)?;
        let pass = if self.needs_token() { self.pass(headers, browsers)? } else { Pass::Open };
        if let Pass::Open = pass {
            browsers.check_host(headers).map_err(cross_origin)?;
        }
        let scopes = scopes(request.method(), request.uri().path());
        if scopes.iter().any(|scope| pass.has(*scope)) {
            return Ok(pass);
        }
        let wanted: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        let detail = format!("the token lacks the scope `{}`: use a token with this scope", wanted.join("` or `"));
        Err(refused(StatusCode::FORBIDDEN, "forbidden", detail))
    }

    /// The token or session of a request that needs one.
    fn pass(&self, headers: &HeaderMap, browsers: &BrowserRules) -> Result<Pass, Refused> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let shown = values.next().map(HeaderValue::as_bytes).filter(|_| values.next().is_none());
        // Only scripts and commands send a bearer token. A browser adds the password of Basic to each request, also for another host's page.
        let shown = shown.and_then(ShownToken::bearer);
        let (tokens, now) = (self.0.tokens.current(), now());
        let halves = Halves::of(headers, self.cookie()).filter(|_| shown.is_none());
        if let Some(halves) = halves {
            browsers.check_host(headers).map_err(cross_origin)?;
            let found = halves.find(&self.0.sessions, &tokens, now);
            return found.map(|(id, session)| Pass::Session(id, session)).ok_or_else(|| {
                let detail = format!(
                    "the session is over, or lacks the cookie {} or the header Forebay-Check: log in again",
                    self.cookie()
                );
                unauthorized(detail)
            });
        }
        match tokens.check(Demand::Always, shown.as_ref(), now.unix) {
            Ok(Some(token)) => Ok(Pass::Bearer(Box::new(token.clone()))),
            Ok(None) => Err(unauthorized(Denied::Missing.to_string())),
            Err(denied) => Err(unauthorized(denied.to_string())),
        }
    }

    /// Whether what let a request in would still do so.
    pub(super) fn still_admits(&self, pass: &Pass) -> bool {
        let (tokens, now) = (self.0.tokens.current(), now());
        let is_same = |digest: &Digest, token: &Token| {
            tokens.with_digest(digest, now.unix).is_ok_and(|current| current.scopes == token.scopes)
        };
        match pass {
            Pass::Open => !self.needs_token(),
            Pass::Bearer(token) => is_same(&token.digest, token),
            Pass::Session(id, _) => self.0.sessions.is_open(*id, &tokens, now),
        }
    }
}

pub(super) fn now() -> Now {
    Now { instant: Instant::now(), unix: unix_microseconds() }
}

/// The scopes that a request needs; one of them is enough. What changes something or costs CPU needs `admin`. A dry run of a payload changes nothing.
fn scopes(method: &Method, path: &str) -> &'static [Scope] {
    let is_dry_run = *method == Method::POST && is_dry_run(of_peer(path));
    if super::is_read(method) || is_dry_run || path == admin_api::paths::SESSION {
        &[Scope::Read, Scope::Admin]
    } else {
        &[Scope::Admin]
    }
}

/// The path of a request to a peer as the peer gets it; other paths as they are.
fn of_peer(path: &str) -> &str {
    let peer = path.strip_prefix(admin_api::paths::PEERS).and_then(|rest| rest.strip_prefix('/'));
    peer.and_then(|rest| rest.find('/').map(|end| &rest[end..])).unwrap_or(path)
}

/// Whether the path is that of dry runs. The fleet passes on no path with `..` or an escape.
fn is_dry_run(path: &str) -> bool {
    path.strip_prefix(admin_api::paths::TRY).is_some_and(super::is_below)
}

/// The answer to a request that a page of another origin may have sent.
pub(super) fn cross_origin(detail: String) -> Refused {
    refused(StatusCode::FORBIDDEN, "cross_origin", detail)
}

fn unauthorized(detail: String) -> Refused {
    let mut response = refused(StatusCode::UNAUTHORIZED, "unauthorized", detail);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn refused(status: StatusCode, code: &str, detail: String) -> Refused {
    Box::new(response::problem(status, code, detail).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_may_read_and_try_only() {
        let is_free = |method, path| scopes(&method, path).contains(&Scope::Read);
        for path in ["/api/try", "/api/try/", "/api/try/access", "/api/peers/b/api/try/access.b", "/api/session"] {
            assert!(is_free(Method::POST, path), "{path}");
        }
        for path in [
            "/api/tryout",
            "/api/reload",
            "/api/peers/b/api/reload",
            "/api/peers/api/try",
            "/api/peers/b/api/session",
            "/api/session/x",
        ] {
            assert!(!is_free(Method::POST, path) && is_free(Method::GET, path), "{path}");
        }
        assert!(!is_free(Method::PUT, "/api/try") && is_free(Method::HEAD, "/metrics"));
    }
}
