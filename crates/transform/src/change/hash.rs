//! SHA-256, plain or with a key.

use sha2::{Digest, Sha256};

use super::Changed;
use json::text;

/// Replaces a value by a hash: of a string's characters, of any other value as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Hash {
    start: Sha256,
    /// With a key: the state before the second pass.
    outer: Option<Sha256>,
    /// How many digits are kept.
    digits: usize,
}

/// Digits of the whole hash.
pub(crate) const DIGITS: usize = 64;
const BLOCK: usize = 64;

impl Hash {
    /// With a key it is HMAC-SHA-256 (RFC 2104): without the key an attacker can't find the value by trying.
    pub(crate) fn new(key: Option<&[u8]>, digits: usize) -> Self {
        let Some(key) = key else { return Self { start: Sha256::new(), outer: None, digits } };
        let mut block = [0; BLOCK];
        let hashed = Sha256::digest(key);
        let key = if key.len() > BLOCK { &hashed[..] } else { key };
        block[..key.len()].copy_from_slice(key);
        let begin = |pad: u8| Sha256::new().chain_update(block.map(|byte| byte ^ pad));
        Self { start: begin(0x36), outer: Some(begin(0x5c)), digits }
    }

    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        let text = text::scalar(json);
        let mut digest = self.start.clone().chain_update(text.as_deref().unwrap_or(json)).finalize();
        if let Some(outer) = &self.outer {
            digest = outer.clone().chain_update(digest).finalize();
        }
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(&digest) {
            pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.push('"');
        out.push_str(std::str::from_utf8(&digits[..self.digits]).expect("digits are ASCII"));
        out.push('"');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: Option<&[u8]>, digits: usize, json: &str) -> String {
        let mut out = String::new();
        Hash::new(key, digits).apply(json, &mut out).unwrap();
        out
    }

    #[test]
    fn hashes_are_those_of_the_standards() {
        // FIPS 180-4's example; RFC 4231, test cases 1 and 6.
        assert_eq!(
            hash(None, DIGITS, "\"abc\""),
            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""
        );
        assert_eq!(
            hash(Some(&[0x0b; 20]), DIGITS, "\"Hi There\""),
            "\"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7\""
        );
        assert_eq!(
            hash(Some(&[0xaa; 131]), DIGITS, "\"Test Using Larger Than Block-Size Key - Hash Key First\""),
            "\"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54\""
        );
    }

    #[test]
    fn characters_count_and_not_how_they_are_written() {
        assert_eq!(hash(None, 9, r#""\u0061bc""#), "\"ba7816bf8\"");
        assert_eq!(hash(None, 9, "12"), hash(None, 9, "\"12\""));
    }
}
