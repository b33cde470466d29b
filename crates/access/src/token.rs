//! What is known of a token.

use event::Origin;

use crate::{Digest, Name, PartialStatus, Scopes};

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What people call it.
    pub name: Name,
    /// The hash of its secret.
    pub digest: Digest,
    /// What it allows.
    pub scopes: Scopes,
    /// Whose events come with it.
    pub source: Name,
    /// The only gateway whose lanes it opens on a writer's port, by the origin of its data directory; without one it opens those of all.
    pub origin: Option<Origin>,
    /// The status of partly accepted batches; without one, the types of the batch decide.
    pub partial: Option<PartialStatus>,
    /// When it was made: microseconds since 1970, UTC.
    pub created: i64,
    /// From when on it is worth nothing, if ever: microseconds since 1970, UTC.
    pub expires: Option<i64>,
}

impl Token {
    /// Whether it is worth nothing any more at `now` (microseconds since 1970, UTC).
    #[must_use]
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Scopes {
    /// The scopes of these tokens together.
    #[must_use]
    pub fn of_all(tokens: &[Token]) -> Self {
        tokens.iter().fold(Self::default(), |scopes, token| scopes.and(token.scopes))
    }
}
