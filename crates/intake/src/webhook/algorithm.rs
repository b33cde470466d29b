//! Keys, signatures, and comparisons whose time doesn't depend on how many bytes are equal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// What proves the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// The header has the secret.
    Token,
    /// HMAC with SHA-1. Its known weaknesses don't affect HMAC.
    Sha1,
    /// HMAC with SHA-256.
    Sha256,
    /// HMAC with SHA-512.
    Sha512,
}

/// The words of the setting.
pub(super) const ALGORITHMS: [(&str, &[Algorithm]); 3] =
    [("sha256", &[Algorithm::Sha256]), ("sha1", &[Algorithm::Sha1]), ("sha512", &[Algorithm::Sha512])];

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Two digits for each byte, of either case.
    Hex,
    /// Base64 with padding (RFC 4648, section 4).
    Base64,
}

/// The words of the setting.
pub(super) const ENCODINGS: [(&str, Encoding); 2] = [("hex", Encoding::Hex), ("base64", Encoding::Base64)];

impl Encoding {
    /// The bytes of a signature; `None` if the text has none.
    pub(super) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => text::hex::decode(text),
            Self::Base64 => STANDARD.decode(text).ok(),
        }
    }
}

/// A secret. It is never displayed: ring shows only the algorithm of a key.
#[derive(Clone, Debug)]
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// The secret with these bytes.
    pub(super) fn new(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let hash = match algorithm {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Token | Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        Self(hmac::Key::new(hash, bytes))
    }

    /// The signature of a text in pieces.
    pub(super) fn sign(&self, pieces: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        pieces.iter().for_each(|piece| context.update(piece));
        context.sign()
    }

    /// Whether another text is the secret.
    pub(super) fn is(&self, other: &[u8]) -> bool {
        // Two keys are equal if they sign alike.
        let tag = Self(hmac::Key::new(self.0.algorithm(), other)).sign(&[]);
        hmac::verify(&self.0, &[], tag.as_ref()).is_ok()
    }
}

/// Whether two texts are equal. Not even the length of an equal beginning can be measured: their signatures are compared.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"equal");
    hmac::verify(&key, one, hmac::sign(&key, other).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_whole() {
        for (one, other, expected) in
            [("a", "a", true), ("a", "ab", false), ("ab", "a", false), ("", "", true), ("", "a", false)]
        {
            assert_eq!(is_equal(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
            assert_eq!(Secret::new(Algorithm::Token, one.as_bytes()).is(other.as_bytes()), expected, "{one} {other}");
        }
    }
}
