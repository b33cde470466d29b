//! Which requests may enter: by token, host, origin and proxy.

mod allowed_hosts;
mod cors;
mod forwarded;
mod trusted_proxies;

pub(crate) use allowed_hosts::AllowedHosts;
pub(crate) use cors::Cors;
pub(crate) use trusted_proxies::TrustedProxies;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use access::{Demand, Denied, OwnTokens, Scope, Tokens};

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

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

/// Authenticates the requests of a shard.
pub(crate) struct Authenticator {
    tokens: RefCell<OwnTokens>,
    demand: Cell<Demand>,
    read_demand: Cell<Demand>,
    anonymous: Arc<str>,
}

impl Authenticator {
    /// To read needs a token by a demand of its own.
    pub(crate) fn new(tokens: Arc<Tokens>, demand: Demand, read_demand: Demand) -> Self {
        let [demand, read_demand] = [demand, read_demand].map(Cell::new);
        Self { tokens: RefCell::new(OwnTokens::new(tokens)), demand, read_demand, anonymous: "".into() }
    }

    /// From now on other requests need a token.
    pub(crate) fn set_demands(&self, demand: Demand, read_demand: Demand) {
        self.demand.set(demand);
        self.read_demand.set(read_demand);
    }

    /// The source of requests without a token.
    pub(crate) fn anonymous(&self) -> Arc<str> {
        self.anonymous.clone()
    }

    /// Returns the source of the token of a request that is received at `now` (microseconds since 1970, UTC); `None` if it needs no token
    /// and has none.
    ///
    /// # Errors
    /// It has no access.
    pub(crate) fn authenticate(
        &self,
        access: RequiredAccess,
        authorization: Option<&[u8]>,
        now: i64,
    ) -> Result<Option<Arc<str>>, Refused> {
        if access == RequiredAccess::Free {
            return Ok(None);
        }
        let demand = if access == RequiredAccess::Scope(Scope::Read) { &self.read_demand } else { &self.demand };
        let mut tokens = self.tokens.borrow_mut();
        let Some(token) = tokens.check(demand.get(), authorization, now).map_err(unauthorized)? else {
            return Ok(None);
        };
        match access {
            RequiredAccess::Scope(scope) if !token.scopes.has(scope) => {
                Err(Problem::boxed(ErrorCode::Forbidden, format!("the token {} lacks the scope `{scope}`", token.name)))
            }
            _ => Ok(Some(token.source.as_arc().clone())),
        }
    }
}

fn unauthorized(denied: Denied) -> Refused {
    Problem::boxed(ErrorCode::Unauthorized, denied.to_string())
}
