//! The secret of a token, which its owner has, and the digest that is kept here.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use text::hex::{self, Hex};

/// The prefix of every token, by which users and scanners of source code recognise it.
pub(crate) const PREFIX: &str = "fb_";
/// Random bytes of a token: 256 bits can't be guessed.
pub const RANDOM_BYTES: usize = 32;
/// Digits of 5 bits that copy well: a double click selects a whole token, and no two of them look alike (Crockford's, in
/// lower case: <https://www.crockford.com/base32.html>).
pub(crate) const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGIT_BITS: u32 = 5;
/// Bytes of a token as text. They fit one block of SHA-256.
pub(crate) const TEXT_BYTES: usize = PREFIX.len() + (RANDOM_BYTES * 8).div_ceil(DIGIT_BITS as usize);

/// A new token, to show to its owner.
pub struct NewToken(String);

impl NewToken {
    /// Writes a token with these bytes, which must be random.
    #[must_use]
    pub fn of_random(bytes: [u8; RANDOM_BYTES]) -> Self {
        let mut text = PREFIX.to_owned();
        let (mut held, mut bits) = (0_usize, 0);
        for byte in bytes {
            held = (held << 8 | usize::from(byte)) & 0xffff;
            bits += 8;
            while bits >= DIGIT_BITS {
                bits -= DIGIT_BITS;
                text.push(char::from(DIGITS[held >> bits & 31]));
            }
        }
        if bits > 0 {
            text.push(char::from(DIGITS[held << (DIGIT_BITS - bits) & 31]));
        }
        Self(text)
    }

    /// The token. Write it once to the standard output, and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The digest that is kept.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::hash(self.0.as_bytes())
    }
}

/// A text that isn't a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token: expected {PREFIX} and 52 characters of 0-9 and a-z without i, l, o and u")]
pub struct InvalidToken;

impl FromStr for NewToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let digits = text.strip_prefix(PREFIX).filter(|_| text.len() == TEXT_BYTES).ok_or(InvalidToken)?;
        digits.bytes().all(|digit| DIGITS.contains(&digit)).then(|| Self(text.to_owned())).ok_or(InvalidToken)
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A text that isn't a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest of a token: expected 64 hexadecimal digits, in lower case")]
pub struct InvalidDigest;

impl Digest {
    fn hash(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// The digest of the text that a request shows; `None`, without hashing, if it can't be a token.
    pub(crate) fn of_shown(text: &[u8]) -> Option<Self> {
        (text.len() == TEXT_BYTES && text.starts_with(PREFIX.as_bytes())).then(|| Self::hash(text))
    }

    /// The part by which digests are looked up.
    pub(crate) fn index(&self) -> u64 {
        let (index, _) = self.0.split_first_chunk().expect("a digest is longer than its index");
        u64::from_be_bytes(*index)
    }

    /// Whether both are equal, in constant time.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let has_capitals = text.bytes().any(|digit| digit.is_ascii_uppercase());
        hex::decode_array(text).filter(|_| !has_capitals).map(Self).ok_or(InvalidDigest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn token_is_written_as_documented() {
        let zeros = NewToken::of_random([0; RANDOM_BYTES]);
        assert_eq!(zeros.expose(), format!("fb_{}", "0".repeat(52)));
        assert_eq!(NewToken::of_random([0xff; RANDOM_BYTES]).expose(), format!("fb_{}g", "z".repeat(51)));
        assert_eq!(format!("{zeros:?}"), "Secret(…)");
    }

    #[test]
    fn invalid_token_is_rejected() {
        let text = NewToken::of_random([7; RANDOM_BYTES]).expose().to_owned();
        assert_eq!(text.parse::<NewToken>().unwrap().expose(), text);
        for wrong in
            ["", "fb_", &text[1..], &format!("{text}0"), &text.replace("fb_", "fb-"), &format!("fb_{}", "u".repeat(52))]
        {
            assert_eq!(wrong.parse::<NewToken>().err(), Some(InvalidToken), "{wrong}");
        }
    }

    #[test]
    fn invalid_token_text_is_not_hashed() {
        let secret = NewToken::of_random([7; RANDOM_BYTES]);
        assert_eq!(Digest::of_shown(secret.expose().as_bytes()), Some(secret.digest()));
        for wrong in ["", "fb_", &secret.expose()[1..], &format!("{}0", secret.expose()), &"x".repeat(TEXT_BYTES)] {
            assert_eq!(Digest::of_shown(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn digest_equals_sha256_of_other_programs() {
        // printf abc | sha256sum
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::hash(b"abc").to_string(), known);
        assert_eq!(known.to_uppercase().parse::<Digest>(), Err(InvalidDigest));
    }

    proptest! {
        #[test]
        fn different_bytes_give_different_tokens(one: [u8; RANDOM_BYTES], other: [u8; RANDOM_BYTES]) {
            let [first, second] = [one, other].map(NewToken::of_random);
            prop_assert_eq!(first.expose().len(), TEXT_BYTES);
            prop_assert_eq!(first.expose() == second.expose(), one == other);
            prop_assert_eq!(first.digest().is(&second.digest()), one == other);
            prop_assert_eq!(first.digest().to_string().parse(), Ok(first.digest()));
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = text.parse::<Digest>();
        }
    }
}
