//! Percent-encoding in URLs (RFC 3986 §2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything except the characters that have no special meaning in any part of a URL (unreserved, RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const RESERVED_IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// A text as a segment of a path or a value of a query.
#[must_use]
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A text whose slashes divide a path. Signatures of S3 need exactly these escapes.
#[must_use]
pub fn encode_path(text: &str) -> String {
    utf8_percent_encode(text, RESERVED_IN_PATH).to_string()
}

/// The text that a value encodes, unless it isn't percent-encoded UTF-8. A plus sign is one: times have them.
#[must_use]
pub fn decode(value: &str) -> Option<String> {
    let begins_with_digits =
        |rest: &[u8]| rest.first_chunk::<2>().is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    let is_encoded = value.split('%').skip(1).all(|rest| begins_with_digits(rest.as_bytes()));
    is_encoded.then(|| percent_decode_str(value).decode_utf8().ok().map(Into::into)).flatten()
}

/// The same of any text: a `%` without two digits stays, and bytes that are no UTF-8 become `\u{fffd}`.
#[must_use]
pub fn decode_lossy(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(encode("a/B-9._~ é"), "a%2FB-9._~%20%C3%A9");
        assert_eq!(encode_path("a/B-9._~"), "a/B-9._~");
        assert_eq!(encode_path("b c/é=1%"), "b%20c/%C3%A9%3D1%25");
    }

    #[test]
    fn values_of_encoded_utf8_are_decoded() {
        assert_eq!(decode("a+b%2fc%C3%a9").as_deref(), Some("a+b/cé"));
        for wrong in ["%", "%4", "%4g", "%%41", "%é", "%ff", "a%+1"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode_lossy("%4%41%ff"), "%4A\u{fffd}");
    }
}
