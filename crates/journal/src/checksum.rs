//! The one checksum of the journal: XXH3-64 with a seed (<https://xxhash.com>).
//!
//! Payload bytes come from strangers. What is checked with a segment's random seed can't be forged by them:
//! the seed never leaves the disk.

/// The checksum of `bytes` under `seed`.
#[must_use]
pub(crate) fn seeded(seed: u64, bytes: &[u8]) -> u64 {
    if cfg!(feature = "mutant-no-checksum") {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
