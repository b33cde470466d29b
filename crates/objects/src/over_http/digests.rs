//! The digests by which stores identify bytes.

use md5::Md5;
use sha2::{Digest, Sha256};

/// The digests by which stores identify bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Their number.
    pub bytes: u64,
    /// Their MD5.
    pub md5: [u8; 16],
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

impl Digests {
    /// Those of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, md5: Md5::digest(bytes).into(), sha256: Sha256::digest(bytes).into() }
    }
}
