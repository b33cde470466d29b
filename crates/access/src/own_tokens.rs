//! The tokens as one thread knows them: its own copy of the newest set, and what was shown to it lately.

use std::sync::Arc;

use subtle::ConstantTimeEq;

use crate::secret::TEXT_BYTES;
use crate::{Demand, Denied, Token, TokenSet, Tokens};

/// Tokens that are remembered as they were shown: to hash one again takes half a microsecond without instructions of the
/// processor for it, a twentieth of what a request costs.
const SHOWN_MAX: usize = 32;

/// A thread's own tokens.
#[derive(Debug)]
pub struct OwnTokens {
    shared: Arc<Tokens>,
    generation: u64,
    set: TokenSet,
    /// Each at a place that follows from its text; empty until the first is shown.
    shown: Vec<Option<Shown>>,
}

struct Shown {
    text: [u8; TEXT_BYTES],
    /// Where it is in the set.
    at: usize,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown(…)")
    }
}

impl OwnTokens {
    /// A copy of what is there now, which follows every change.
    #[must_use]
    pub fn new(shared: Arc<Tokens>) -> Self {
        let (generation, set) = (shared.generation(), shared.current().apart());
        Self { shared, generation, set, shown: Vec::new() }
    }

    /// As [`TokenSet::check`], on the newest set.
    ///
    /// # Errors
    /// The request isn't to be let in.
    pub fn check(&mut self, demand: Demand, authorization: Option<&[u8]>, now: i64) -> Result<Option<&Token>, Denied> {
        let generation = self.shared.generation();
        if generation != self.generation {
            *self = Self::new(self.shared.clone());
        }
        let Some(text) = self.set.to_be_found(demand, authorization)? else { return Ok(None) };
        let at = match self.remembered(text) {
            Some(at) => at,
            None => self.find(text)?,
        };
        self.set.good(at, now).map(Some)
    }

    fn remembered(&self, text: &[u8]) -> Option<usize> {
        let shown = self.shown.get(place(text)?)?.as_ref()?;
        bool::from(shown.text[..].ct_eq(text)).then_some(shown.at)
    }

    fn find(&mut self, text: &[u8]) -> Result<usize, Denied> {
        let at = self.set.find(text)?;
        if let (Some(place), Ok(text)) = (place(text), text.try_into()) {
            self.shown.resize_with(SHOWN_MAX, || None);
            self.shown[place] = Some(Shown { text, at });
        }
        Ok(at)
    }
}

/// Five bits of the text, which leave 251 to guess.
fn place(text: &[u8]) -> Option<usize> {
    text.last_chunk::<2>().map(|[digit, _]| usize::from(*digit) % SHOWN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::tests::token;

    fn named(own: &mut OwnTokens, shown: &str, now: i64) -> Result<String, Denied> {
        let found = own.check(Demand::Always, Some(shown.as_bytes()), now)?;
        Ok(found.unwrap().name.to_string())
    }

    #[test]
    fn what_is_remembered_is_right() {
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
    fn what_is_remembered_expires_and_is_revoked() {
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
