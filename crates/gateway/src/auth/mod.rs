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

    /// Checks the token of a request with these headers that is received at `now` (microseconds since 1970, UTC); `None` if it needs no
    /// token and has none.
    ///
    /// # Errors
    /// It has no access, or shows more than one credential.
    pub(crate) fn authenticate(
        &self,
        access: RequiredAccess,
        fields: &Fields<'_>,
        now: i64,
    ) -> Result<Option<Authenticated>, Refused> {
        if access == RequiredAccess::Free {
            return Ok(None);
        }
        let shown = ShownToken::of(fields.authorization, fields.api_key).map_err(several)?;
        let demand = if access == RequiredAccess::Scope(Scope::Read) { &self.read_demand } else { &self.demand };
        let mut tokens = self.tokens.borrow_mut();
        let Some(token) = tokens.check(demand.get(), shown.as_ref(), now).map_err(unauthorized)? else {
            return Ok(None);
        };
        match access {
            RequiredAccess::Scope(scope) if !token.scopes.has(scope) => Err(Problem::boxed(
                ErrorCode::Forbidden,
                format!("the token {} lacks the scope `{scope}`: use a token with this scope", token.name),
            )),
            _ => {
                let (source, partial) = (token.source.as_arc().clone(), token.partial);
                let types = token.types.clone();
                Ok(Some(Authenticated {
                    source,
                    partial,
                    types,
                    is_basic: shown.is_some_and(|shown| shown.is_basic()),
                }))
            }
        }
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
