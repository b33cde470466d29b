//! A thread's copy of the newest set of tokens.

use std::sync::Arc;

use crate::{Demand, Denied, ShownToken, Token, TokenSet, Tokens};

/// A thread's copy.
#[derive(Debug)]
pub struct OwnTokens {
    shared: Arc<Tokens>,
    generation: u64,
    set: TokenSet,
}

impl OwnTokens {
    /// A copy of the current set, which follows every change.
    #[must_use]
    pub fn new(shared: Arc<Tokens>) -> Self {
        let (generation, set) = (shared.generation(), shared.current().apart());
        Self { shared, generation, set }
    }

    /// As [`TokenSet::check`], on the newest set.
    ///
    /// # Errors
    /// The request has no access.
    pub fn check(
        &mut self,
        demand: Demand,
        shown: Option<&ShownToken<'_>>,
        now: i64,
    ) -> Result<Option<&Token>, Denied> {
        if self.shared.generation() != self.generation {
            *self = Self::new(self.shared.clone());
        }
        self.set.check(demand, shown, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::tests::{bearer, token};

    fn named(own: &mut OwnTokens, shown: &str, now: i64) -> Result<String, Denied> {
        let found = own.check(Demand::Always, bearer(shown).as_ref(), now)?;
        Ok(found.unwrap().name.to_string())
    }

    #[test]
    fn cached_set_knows_only_its_tokens() {
        let (tokens, shown): (Vec<_>, Vec<_>) = (0..100).map(|number| token(number, None)).unzip();
        let mut own = OwnTokens::new(Arc::new(Tokens::new(TokenSet::new(tokens))));
        for _ in 0..3 {
            for (number, shown) in shown.iter().enumerate() {
                assert_eq!(named(&mut own, shown, 0), Ok(format!("t{number}")));
                assert_eq!(named(&mut own, shown, 0), Ok(format!("t{number}")));
                let near = format!("{}{}", &shown[..20], &token(200, None).1[20..]);
                assert_eq!(named(&mut own, &near, 0), Err(Denied::Unknown));
            }
        }
    }

    #[test]
    fn cached_token_expires_and_is_revoked() {
        let (first, shown) = token(1, Some(1000));
        let shared = Arc::new(Tokens::new(TokenSet::new(vec![first])));
        let mut own = OwnTokens::new(shared.clone());
        assert_eq!(named(&mut own, &shown, 999), Ok("t1".to_owned()));
        assert_eq!(named(&mut own, &shown, 1000), Err(Denied::Expired));
        assert_eq!(named(&mut own, &shown, 0), Ok("t1".to_owned()));
        let (second, shown_second) = token(2, None);
        shared.publish(TokenSet::new(vec![second]));
        assert_eq!(named(&mut own, &shown, 0), Err(Denied::Unknown));
        assert_eq!(named(&mut own, &shown_second, 0), Ok("t2".to_owned()));
    }
}
