//! The tokens of a running server, which may change at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::TokenSet;

/// Publishes the newest set of tokens to all readers.
#[derive(Debug, Default)]
pub struct Tokens {
    current: Mutex<Arc<TokenSet>>,
    generation: AtomicU64,
}

impl Tokens {
    /// Begins with this set.
    #[must_use]
    pub fn new(set: TokenSet) -> Self {
        Self { current: Mutex::new(Arc::new(set)), generation: AtomicU64::new(0) }
    }

    /// Replaces the current set.
    pub fn publish(&self, set: TokenSet) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The newest set.
    #[must_use]
    pub fn current(&self) -> Arc<TokenSet> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A number that grows after each new set is published: a reader that remembers it sees without a lock whether the set has changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_a_published_set() {
        let tokens = Tokens::default();
        let before = tokens.generation();
        assert!(!tokens.current().were_made());
        tokens.publish(TokenSet::new(Vec::new()));
        assert!(tokens.current().were_made() && tokens.generation() > before);
    }
}
