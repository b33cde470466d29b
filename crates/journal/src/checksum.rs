//! The one checksum of the journal: XXH3-64 with a seed (<https://xxhash.com>).
//!
//! Payload bytes are untrusted. Clients can't forge anything that is checked with a segment's random seed: the seed
//! never leaves the disk.

/// The checksum of `bytes` under `seed`.
#[must_use]
pub(crate) fn seeded(seed: u64, bytes: &[u8]) -> u64 {
    if cfg!(feature = "mutant-no-checksum") {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}
