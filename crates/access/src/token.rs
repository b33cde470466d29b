//! A token as the server knows it.

use std::sync::Arc;

use event::Origin;

use crate::{Digest, Name, PartialStatus, Scopes, TypePatterns};

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its name.
    pub name: Name,
    /// The hash of its secret.
    pub digest: Digest,
    /// Its scopes.
    pub scopes: Scopes,
    /// The source of the events that are sent with it.
    pub source: Name,
    /// The only gateway whose lanes it opens on a writer's port, by its gateway id; `None` for all gateways.
    pub origin: Option<Origin>,
    /// The status of partly accepted batches; without one, the types of the batch decide.
    pub partial: Option<PartialStatus>,
    /// The types of the events that are posted with it; `None` for all types. Only posting is limited, not reading.
    pub types: Option<Arc<TypePatterns>>,
    /// When it was created: microseconds since 1970, UTC.
    pub created: i64,
    /// When it expires, if ever: microseconds since 1970, UTC.
    pub expires: Option<i64>,
}

impl Token {
    /// Whether it has expired at `now` (microseconds since 1970, UTC).
    #[must_use]
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether events of this type may be posted with it.
    #[must_use]
    pub fn allows(&self, type_name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.allow(type_name))
    }
}

impl Scopes {
    /// The scopes of these tokens together.
    #[must_use]
    pub fn of_all(tokens: &[Token]) -> Self {
        tokens.iter().fold(Self::default(), |scopes, token| scopes.and(token.scopes))
    }
}
