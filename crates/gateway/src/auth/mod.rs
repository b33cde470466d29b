//! Which requests may enter: by token, host, origin and proxy.

mod allowed_hosts;
mod cors;
mod forwarded;
mod trusted_proxies;

pub(crate) use allowed_hosts::{AllowedHosts, PageRules, check_origin};
pub(crate) use cors::{Cors, Preflight};
pub(crate) use trusted_proxies::TrustedProxies;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use access::{Demand, Denied, OwnTokens, PartialStatus, Scope, SeveralCredentials, ShownToken, Tokens, TypePatterns};

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use http1::Fields;

/// The access that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredAccess {
    /// None.
    Free,
    /// Any token.
    AnyToken,
    /// A token with this scope.
    Scope(Scope),
    /// A token for posting events, which may be in the body instead of the head.
    IngestByBody,
}

/// A request with a valid token.
pub(crate) struct Authenticated {
    /// The source of the token.
    pub(crate) source: Arc<str>,
    /// The status of partly accepted batches, if the token has one.
    pub(crate) partial: Option<PartialStatus>,
    /// The types that may be posted with the token, if it is limited to some.
    pub(crate) types: Option<Arc<TypePatterns>>,
    /// It is the password or the user of HTTP Basic.
    pub(crate) is_basic: bool,
}

/// What the head of a request shows.
pub(crate) enum Credential {
    /// No token; it needs none.
    None,
    /// A valid token.
    Token(Authenticated),
    /// No token: it must be in the body.
    InBody,
}

/// Authenticates the requests of a shard.
pub(crate) struct Authenticator {
    tokens: RefCell<OwnTokens>,
    demand: Cell<Demand>,
    read_demand: Cell<Demand>,
    anonymous: Arc<str>,
}

impl Authenticator {
    /// `read_demand` says which requests to read need a token.
    pub(crate) fn new(tokens: Arc<Tokens>, demand: Demand, read_demand: Demand) -> Self {
        let [demand, read_demand] = [demand, read_demand].map(Cell::new);
        Self { tokens: RefCell::new(OwnTokens::new(tokens)), demand, read_demand, anonymous: "".into() }
    }

    /// Changes which requests need a token.
    pub(crate) fn set_demands(&self, demand: Demand, read_demand: Demand) {
        self.demand.set(demand);
        self.read_demand.set(read_demand);
    }

    /// The source of requests without a token.
    pub(crate) fn anonymous(&self) -> Arc<str> {
        self.anonymous.clone()
    }

    /// Checks the token of a request with these headers that is received at `now` (microseconds since 1970, UTC).
    ///
    /// # Errors
    /// It has no access, or shows more than one credential.
    pub(crate) fn authenticate(
        &self,
        access: RequiredAccess,
        fields: &Fields<'_>,
        now: i64,
    ) -> Result<Credential, Refused> {
        let scope = match access {
            RequiredAccess::Free => return Ok(Credential::None),
            RequiredAccess::AnyToken => None,
            RequiredAccess::Scope(scope) => Some(scope),
            RequiredAccess::IngestByBody => Some(Scope::Ingest),
        };
        let shown = ShownToken::of(fields.authorization, fields.api_key).map_err(several)?;
        match self.check(scope, shown.as_ref(), now) {
            Ok(authenticated) => Ok(authenticated.map_or(Credential::None, Credential::Token)),
            Err(_) if access == RequiredAccess::IngestByBody && shown.is_none() => Ok(Credential::InBody),
            Err(refused) => Err(refused),
        }
    }

    /// Checks the token in the body of a request that posts events.
    ///
    /// # Errors
    /// It has no access.
    pub(crate) fn authenticate_text(&self, text: &str, now: i64) -> Result<Option<Authenticated>, Refused> {
        let shown = ShownToken::of(None, Some(text.as_bytes())).map_err(several)?;
        self.check(Some(Scope::Ingest), shown.as_ref(), now)
    }

    fn check(
        &self,
        scope: Option<Scope>,
        shown: Option<&ShownToken<'_>>,
        now: i64,
    ) -> Result<Option<Authenticated>, Refused> {
        let demand = if scope == Some(Scope::Read) { &self.read_demand } else { &self.demand };
        let mut tokens = self.tokens.borrow_mut();
        let Some(token) = tokens.check(demand.get(), shown, now).map_err(unauthorized)? else {
            return Ok(None);
        };
        if let Some(scope) = scope.filter(|scope| !token.scopes.has(*scope)) {
            let detail = format!("the token {} lacks the scope `{scope}`: use a token with this scope", token.name);
            return Err(Problem::boxed(ErrorCode::Forbidden, detail));
        }
        let (source, partial, types) = (token.source.as_arc().clone(), token.partial, token.types.clone());
        Ok(Some(Authenticated { source, partial, types, is_basic: shown.is_some_and(ShownToken::is_basic) }))
    }
}

fn several(error: SeveralCredentials) -> Refused {
    Problem::bad("Multiple credentials", error.to_string())
}

fn unauthorized(denied: Denied) -> Refused {
    let detail = match denied {
        Denied::Missing => {
            "this request needs a token: send it as `Authorization: Bearer fb_…`, as the password of HTTP Basic, or \
             as `X-Api-Key: fb_…`"
                .into()
        }
        Denied::Unknown | Denied::Expired => denied.to_string(),
    };
    Problem::boxed(ErrorCode::Unauthorized, detail)
}
