//! The hash that distinguishes duplicates from other bytes with the same id.

use std::fmt;

use event::Origin;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// A hash of a request's bytes as they arrive: XXH3-64 under a seed that belongs to the data directory, so it is the
/// same after a restart. A client that knows the seed could construct two texts with one hash, but both would be its
/// own.
#[derive(Clone)]
pub struct ContentHash {
    seed: u64,
    /// Created with the first bytes: few requests need it.
    state: Option<Box<Xxh3>>,
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentHash")
    }
}

impl ContentHash {
    /// The hash of no bytes.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        let (seed, _) = origin.0.split_first_chunk().expect("a gateway id has 16 bytes");
        Self { seed: u64::from_le_bytes(*seed), state: None }
    }

    /// The hash of `bytes` alone.
    #[must_use]
    pub fn of(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed)
    }

    /// Adds bytes. How they are cut makes no difference.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.get_or_insert_with(|| Box::new(Xxh3::with_seed(self.seed))).update(bytes);
    }

    /// The hash of all bytes so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.state.as_ref().map_or_else(|| self.of(&[]), |state| state.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_independent_of_chunk_boundaries() {
        let hash = ContentHash::new(Origin([3; 16]));
        assert_eq!(hash.value(), hash.of(b""));
        let mut cut = hash.clone();
        ["a", "", "bc"].iter().for_each(|part| cut.update(part.as_bytes()));
        assert_eq!(cut.value(), hash.of(b"abc"));
        assert_ne!(hash.of(b"abc"), ContentHash::new(Origin([4; 16])).of(b"abc"));
    }
}
