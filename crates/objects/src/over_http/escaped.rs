//! Names as parts of a path.

/// A name as a part of a path (RFC 3986 §2.3): everything but letters, digits and `-._~/` as escapes. Signatures of S3 want exactly
/// these.
#[must_use]
pub fn escaped(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path += &format!("%{byte:02X}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unreserved_stays() {
        assert_eq!(escaped("a/B-9._~"), "a/B-9._~");
        assert_eq!(escaped("b c/é=1%"), "b%20c/%C3%A9%3D1%25");
    }
}
