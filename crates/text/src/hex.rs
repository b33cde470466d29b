//! Bytes as hexadecimal digits, in lowercase.

use std::fmt::{self, Write};

/// Shows bytes.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
        self.0.iter().try_for_each(|byte| f.write_char(digit(byte >> 4)).and_then(|()| f.write_char(digit(byte & 15))))
    }
}

/// The bytes as text.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    Hex(bytes).to_string()
}

/// The bytes of a text, including uppercase; `None` if it isn't pairs of digits.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// The same for exactly `N` bytes.
#[must_use]
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_digits_and_digits_bytes() {
        assert_eq!(encode(&[0, 0x1f, 0xa0, 0xff]), "001fa0ff");
        assert_eq!(decode("001fA0FF"), Some(vec![0, 0x1f, 0xa0, 0xff]));
        assert_eq!(
            (decode_array("00ff"), decode_array::<2>("00ff00"), decode("")),
            (Some([0, 255]), None, Some(vec![]))
        );
        for wrong in ["0", "0g", "+f", "é", "0x", " 0"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
