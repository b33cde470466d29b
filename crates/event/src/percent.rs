//! Percent-encoding in the query of a URL (RFC 3986 §2.1).

/// What a value stands for, unless it isn't percent-encoded UTF-8. A plus sign is one: times have them.
#[must_use]
pub fn decode(value: &str) -> Option<String> {
    let mut bytes = value.bytes();
    let mut decoded = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}
