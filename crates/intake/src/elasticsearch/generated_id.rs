//! Ids in responses for documents that have none.
//!
//! Some clients expect an id. These are never stored. The same request gets the same ones, so responses can be compared.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// An odd number with as many ones as zeros.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the ids of a request have in common: a checksum of its body. It must be fast, because it reads every byte; nothing depends on
/// collisions.
pub(super) fn prefix(body: &[u8]) -> String {
    let (words, rest) = body.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let mix = |sum: u64, word: &[u8; 8]| (sum ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(29);
    let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
    let sum = mix(words.iter().fold(length, mix), &last).wrapping_mul(FACTOR);
    URL_SAFE_NO_PAD.encode((sum ^ sum >> 32).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_depends_on_the_body() {
        assert_eq!(prefix(b"a"), prefix(b"a"));
        assert_ne!(prefix(b"a"), prefix(b"b"));
        assert_eq!(prefix(b"").len(), 11);
        let bodies: [&[u8]; 5] = [b"", b"\0", b"12345678", b"123456789", b"12345678\0"];
        let different: std::collections::BTreeSet<String> = bodies.into_iter().map(prefix).collect();
        assert_eq!(different.len(), bodies.len());
    }
}
