//! All tokens of a server at one moment, and whether a request shows one of them.

use std::sync::Arc;

use crate::secret::Digest;
use crate::{Scopes, ShownToken, Token};

/// When a request needs a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Never; but if a request shows a token, it must be valid.
    Never,
    /// As soon as tokens have been created.
    WithTokens,
    /// Always.
    Always,
}

/// Why a request has no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no token.
    #[error("this request needs a token: send it as `Authorization: Bearer fb_…`")]
    Missing,
    /// The token isn't known.
    #[error("unknown token: it was revoked, or it belongs to another server. Send a current token")]
    Unknown,
    /// The token has expired.
    #[error("the token has expired: send a current one")]
    Expired,
}

/// The tokens of a server.
#[derive(Debug, Default)]
pub struct TokenSet {
    /// By digest.
    tokens: Box<[Token]>,
    were_made: bool,
    /// The scopes of all tokens ever, revoked ones too.
    made: Scopes,
}

impl TokenSet {
    /// The set of a server for which no token was ever created.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A set of these tokens. An empty one still demands tokens: to revoke the last token doesn't open the port.
    #[must_use]
    pub fn new(mut tokens: Vec<Token>) -> Self {
        tokens.sort_unstable_by_key(|token| token.digest);
        let made = Scopes::of_all(&tokens);
        Self { tokens: tokens.into(), were_made: true, made }
    }

    /// The same set for a server that has had tokens with the scopes `made`.
    #[must_use]
    pub fn remembering(self, made: Scopes) -> Self {
        Self { made: self.made.and(made), ..self }
    }

    /// A deep copy: threads that count references to the same names would slow each other.
    #[must_use]
    pub fn apart(&self) -> Self {
        let types = |token: &Token| token.types.as_deref().cloned().map(Arc::new);
        let apart = |token: &Token| Token { source: token.source.unshared(), types: types(token), ..token.clone() };
        Self { tokens: self.tokens.iter().map(apart).collect(), ..*self }
    }

    /// Whether tokens were ever created, even if they are revoked by now.
    #[must_use]
    pub const fn were_made(&self) -> bool {
        self.were_made
    }

    /// The scopes of all tokens together, expired ones too.
    #[must_use]
    pub fn scopes(&self) -> Scopes {
        Scopes::of_all(&self.tokens)
    }

    /// The scopes of every token that was ever created, revoked ones too. A port that needs a token still needs one after the last token is
    /// revoked.
    #[must_use]
    pub const fn made(&self) -> Scopes {
        self.made
    }

    /// The token of a request that is received at `now` (microseconds since 1970, UTC) and shows this text; `None` if it shows none and
    /// needs none.
    ///
    /// # Errors
    /// The request has no access.
    pub fn check(&self, demand: Demand, shown: Option<&ShownToken<'_>>, now: i64) -> Result<Option<&Token>, Denied> {
        let is_needed = match demand {
            Demand::Never => false,
            Demand::WithTokens => self.were_made,
            Demand::Always => true,
        };
        match shown.filter(|_| is_needed || self.were_made) {
            Some(shown) => match self.find(shown.bytes())? {
                token if token.is_expired(now) => Err(Denied::Expired),
                token => Ok(Some(token)),
            },
            None if is_needed => Err(Denied::Missing),
            None => Ok(None),
        }
    }

    /// The token with this digest, at `now` (microseconds since 1970, UTC).
    ///
    /// # Errors
    /// It was revoked, or has expired.
    pub fn with_digest(&self, digest: &Digest, now: i64) -> Result<&Token, Denied> {
        let token = self.find_digest(digest)?;
        if token.is_expired(now) { Err(Denied::Expired) } else { Ok(token) }
    }

    /// The token that is shown.
    fn find(&self, shown: &[u8]) -> Result<&Token, Denied> {
        self.find_digest(&Digest::of_shown(shown).ok_or(Denied::Unknown)?)
    }

    fn find_digest(&self, digest: &Digest) -> Result<&Token, Denied> {
        // The time of the search depends only on the hash of the shown text, so it reveals nothing about any token.
        let start = self.tokens.partition_point(|token| token.digest.index() < digest.index());
        let mut near = self.tokens[start..].iter().take_while(|token| token.digest.index() == digest.index());
        near.find(|token| token.digest.is(digest)).ok_or(Denied::Unknown)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{NewToken, Scope};

    /// The token that a header with this value shows.
    pub(crate) fn bearer(authorization: &str) -> Option<ShownToken<'_>> {
        ShownToken::bearer(authorization.as_bytes())
    }

    /// A token, and the header that shows it.
    pub(crate) fn token(number: u8, expires: Option<i64>) -> (Token, String) {
        let secret = NewToken::of_random([number; 32]);
        let name: crate::Name = format!("t{number}").parse().unwrap();
        let scopes = [Scope::Ingest].into_iter().collect();
        let digest = secret.digest();
        let token = Token {
            name: name.clone(),
            digest,
            scopes,
            source: name,
            origin: None,
            partial: None,
            types: None,
            created: 0,
            expires,
        };
        (token, format!("Bearer {}", secret.expose()))
    }

    #[test]
    fn set_finds_only_its_tokens() {
        let (tokens, shown): (Vec<_>, Vec<_>) = (0..100).map(|number| token(number, None)).unzip();
        let set = TokenSet::new(tokens);
        for (number, shown) in shown.iter().enumerate() {
            let found = set.check(Demand::Always, bearer(shown).as_ref(), 0).unwrap().unwrap();
            assert_eq!(found.name.as_str(), format!("t{number}"));
        }
        let (_, unknown) = token(200, None);
        assert_eq!(set.check(Demand::Always, bearer(&unknown).as_ref(), 0), Err(Denied::Unknown));
        assert!(set.scopes().has(Scope::Ingest) && !set.scopes().has(Scope::Admin));
    }

    #[test]
    fn copies_of_sets_share_no_limits() {
        let (token, shown) = token(1, None);
        let types = crate::TypePatterns::new(vec!["a.*".parse().unwrap()]).map(Arc::new);
        let set = TokenSet::new(vec![Token { types, ..token }]);
        let (copy, shown) = (set.apart(), bearer(&shown));
        let found =
            |set: &TokenSet| set.check(Demand::Always, shown.as_ref(), 0).unwrap().unwrap().types.clone().unwrap();
        assert!(found(&set) == found(&copy) && !Arc::ptr_eq(&found(&set), &found(&copy)));
    }

    #[test]
    fn token_allows_only_its_types() {
        let (token, _) = token(1, None);
        let types = crate::TypePatterns::new(vec!["a.*".parse().unwrap()]).map(Arc::new);
        let limited = Token { types, ..token.clone() };
        assert_eq!([token.allows("b"), limited.allows("a.b"), limited.allows("b")], [true, true, false]);
    }

    #[test]
    fn token_expires_at_its_time() {
        let (token, shown) = token(1, Some(1000));
        let set = TokenSet::new(vec![token]);
        assert!(set.check(Demand::Always, bearer(&shown).as_ref(), 999).is_ok());
        assert_eq!(set.check(Demand::Always, bearer(&shown).as_ref(), 1000), Err(Denied::Expired));
    }

    #[test]
    fn bearer_scheme_matches_in_any_case() {
        let (token, shown) = token(1, None);
        let set = TokenSet::new(vec![token]);
        for same in [shown.clone(), shown.replace("Bearer ", "bEARER   ")] {
            assert!(set.check(Demand::Always, bearer(&same).as_ref(), 0).is_ok(), "{same}");
        }
        for other in ["Basic eDp5", "Bearer", "", &shown["Bearer ".len()..]] {
            assert_eq!(set.check(Demand::Always, bearer(other).as_ref(), 0), Err(Denied::Missing), "{other}");
        }
        assert_eq!(set.check(Demand::Always, bearer("Bearer ").as_ref(), 0), Err(Denied::Unknown));
    }

    #[test]
    fn token_is_required_by_demand_and_set() {
        let (_, unknown) = token(2, None);
        let unknown = bearer(&unknown);
        let none = TokenSet::none();
        let revoked = TokenSet::new(Vec::new());
        for (set, demand, without, with) in [
            (&none, Demand::Never, Ok(None), Ok(None)),
            (&none, Demand::WithTokens, Ok(None), Ok(None)),
            (&none, Demand::Always, Err(Denied::Missing), Err(Denied::Unknown)),
            (&revoked, Demand::Never, Ok(None), Err(Denied::Unknown)),
            (&revoked, Demand::WithTokens, Err(Denied::Missing), Err(Denied::Unknown)),
            (&revoked, Demand::Always, Err(Denied::Missing), Err(Denied::Unknown)),
        ] {
            assert_eq!(set.check(demand, None, 0), without, "{demand:?}");
            assert_eq!(set.check(demand, unknown.as_ref(), 0), with, "{demand:?}");
        }
    }
}
