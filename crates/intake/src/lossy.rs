//! Text of any bytes, as logs have it.

use std::borrow::Cow;

use json::text;
use limits::EVENT_BYTES_MAX;

/// The bytes as a JSON string. Bytes that aren't UTF-8 are replaced by U+FFFD. `None` if it had more bytes than an event may have.
pub(crate) fn string(bytes: &[u8]) -> Option<String> {
    if bytes.len() > EVENT_BYTES_MAX {
        return None;
    }
    let text = str::from_utf8(bytes);
    let replaced = if text.is_ok() { 1 } else { '\u{fffd}'.len_utf8() };
    let written = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        0x80.. => replaced,
        _ => 1,
    };
    if bytes.iter().map(written).sum::<usize>() > EVENT_BYTES_MAX {
        return None;
    }
    Some(text::string(&text.map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_bounded_strings() {
        assert_eq!(string(b"a\"\n").as_deref(), Some(r#""a\"\n""#));
        assert_eq!(string(b"a\xff").as_deref(), Some("\"a\u{fffd}\""));
        let max = EVENT_BYTES_MAX;
        for (byte, count, is_written) in [
            (b'x', max, true),
            (b'x', max + 1, false),
            (1, max / 6 + 1, false),
            (0xff, max / 2, false),
            (b'"', max / 2 + 1, false),
        ] {
            assert_eq!(string(&vec![byte; count]).is_some(), is_written, "{byte}");
        }
    }
}
