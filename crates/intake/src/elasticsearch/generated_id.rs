//! Ids in responses for documents that have none.
//!
//! Some clients expect an id. These are never stored. The same request gets the same ones, so responses can be compared.

use std::hash::{DefaultHasher, Hasher};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What the ids of a request have in common: the hash of its body.
pub(super) fn prefix(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    URL_SAFE_NO_PAD.encode(hasher.finish().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_depends_on_the_body() {
        assert_eq!(prefix(b"a"), prefix(b"a"));
        assert_ne!(prefix(b"a"), prefix(b"b"));
        assert_eq!(prefix(b"").len(), 11);
    }
}
