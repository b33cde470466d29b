//! Authenticates requests on an admin port, that of a writer too. Until the operator creates a token with the scope `admin`, every client on
//! loopback is let in; from then on only clients with such a token. After the last such token is revoked, no client is let in.

use std::fmt;
use std::sync::Arc;

use access::{Demand, Name, Scope, ShownToken, Tokens};
use eventlog::unix_microseconds;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Response, StatusCode};

use super::{AdminBody, csrf, response};

/// Lets requests in.
pub(crate) struct AdminAuth {
    tokens: Arc<Tokens>,
    is_reachable: bool,
    has_tls: bool,
}

type Refused = Box<Response<AdminBody>>;

/// The sender of an admitted request, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The owner of the token of this name.
    Token(Name),
    /// A client that reaches the loopback address, which needs no token.
    Loopback,
    /// A process of this machine that sent SIGHUP.
    Hangup,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::Loopback => f.write_str("loopback without token"),
            Self::Hangup => f.write_str("SIGHUP"),
        }
    }
}

impl AdminAuth {
    /// For a port that is reachable from elsewhere or isn't, and speaks TLS or doesn't.
    pub(crate) const fn new(tokens: Arc<Tokens>, is_reachable: bool, has_tls: bool) -> Self {
        Self { tokens, is_reachable, has_tls }
    }

    /// Whether requests need a token now.
    fn needs_token(&self) -> bool {
        self.is_reachable || self.tokens.current().made().has(Scope::Admin)
    }

    /// The sender of a request. No page of another host has a token, so a request with one may call the port by any name.
    ///
    /// # Errors
    /// The answer to a request that isn't admitted. It needs a token with one of these scopes; or it needs none, and a page of another host
    /// may have sent it.
    pub(crate) fn admit(&self, headers: &HeaderMap, scopes: &[Scope]) -> Result<Caller, Refused> {
        if !self.needs_token() {
            let why = csrf::refuse(headers, self.has_tls);
            return why
                .map_or(Ok(Caller::Loopback), |why| Err(refused(StatusCode::FORBIDDEN, "cross_origin", why.into())));
        }
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let shown = values.next().map(HeaderValue::as_bytes).filter(|_| values.next().is_none());
        // Only scripts and commands send a bearer token. A browser adds the password of Basic to each request, also for another host's page.
        let shown = shown.and_then(ShownToken::bearer);
        let tokens = self.tokens.current();
        match tokens.check(Demand::Always, shown.as_ref(), unix_microseconds()) {
            Ok(Some(token)) if scopes.iter().any(|scope| token.scopes.has(*scope)) => {
                Ok(Caller::Token(token.name.clone()))
            }
            Ok(_) => {
                let wanted: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
                let detail =
                    format!("the token lacks the scope `{}`: use a token with this scope", wanted.join("` or `"));
                Err(refused(StatusCode::FORBIDDEN, "forbidden", detail))
            }
            Err(denied) => {
                let mut response = refused(StatusCode::UNAUTHORIZED, "unauthorized", denied.to_string());
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Err(response)
            }
        }
    }
}

fn refused(status: StatusCode, code: &str, detail: String) -> Refused {
    Box::new(response::problem(status, code, detail).into_response())
}
