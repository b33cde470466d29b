//! Recognises the format of a text that isn't JSON, by its first bytes or by the bytes at the fault, and names a remedy
//! for its sender. Only rejected texts get here.

use super::words::LAST_COMMA;

/// The number of bytes that are read to recognise a form or a multipart body.
pub(crate) const FORM_BYTES: usize = 256;
/// A fault after this many bytes says nothing about the format as a whole.
const FAULT_MAX: usize = 4;

const GZIP: &str = "these are gzip bytes: send them with the header `Content-Encoding: gzip`";
const ZSTD: &str = "these are zstd bytes: send them with the header `Content-Encoding: zstd`";
const ZLIB: &str = "these are zlib (deflate) bytes: send gzip or zstd, and name it in the header `Content-Encoding`";
const UTF_16: &str = "this is UTF-16 text: send UTF-8";
const UTF_32: &str = "this is UTF-32 text: send UTF-8";
const MULTIPART: &str = "this is multipart/form-data: send only the file or field as the body (with curl, --data-binary @FILE instead of -F)";
const FORM_PAYLOAD: &str = "this is a form with the JSON in its field `payload`: have the sender post JSON (GitHub: content type application/json)";
const FORM: &str = "this is a form (name=value&…): have the sender post JSON, or convert the form on the way";
const MARKUP: &str = "this is XML or HTML: send JSON";
const MESSAGE_PACK: &str =
    "these bytes are not text; if they are MessagePack, have the sender write JSON (Fluent Bit: `format json_lines`)";
const ZERO: &str = "a zero byte ends this value: have the sender end lines with a line break";
const SEQUENCE: &str = "this is a JSON text sequence (RFC 7464): send lines, without the record separators (0x1E)";
const NOT_A_NUMBER: &str = "JSON has no NaN and no Infinity: send null, or a string";
const PYTHON: &str = "this is a Python value (None, True, False): write it as JSON with json.dumps";
const UNDEFINED: &str = "JSON has no `undefined`: send null, or leave the member out";
const SINGLE_QUOTE: &str = "JSON strings are in double quotes, and this is a single quote: replace it";
const COMMENT: &str = "JSON has no comments: remove them";

/// The cause of a fault at `offset`, if it is known.
pub(crate) fn explain(text: &[u8], offset: usize) -> Option<&'static str> {
    let whole = if offset <= FAULT_MAX { format(text) } else { None };
    whole.or_else(|| token(text, offset))
}

/// The format of a whole text by its first bytes. None of them can begin JSON.
pub(crate) fn format(text: &[u8]) -> Option<&'static str> {
    let text = &text[..text.len().min(FORM_BYTES)];
    match text {
        [b'-', b'-', ..] if has_ignoring_case(text, b"content-disposition:") => Some(MULTIPART),
        [b'<', ..] => Some(MARKUP),
        [0x1e, ..] => Some(SEQUENCE),
        // An array or a map: no UTF-8 text begins with these bytes.
        [0x80..=0x9f, ..] => Some(MESSAGE_PACK),
        _ => encoding(text).or_else(|| form(text)),
    }
}

/// Bytes that are no UTF-8 text as a whole: packed, or text in another encoding.
pub(crate) fn encoding(text: &[u8]) -> Option<&'static str> {
    match text {
        [0x1f, 0x8b, ..] => Some(GZIP),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(ZSTD),
        [0x78, 0x01 | 0x9c | 0xda, ..] => Some(ZLIB),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, 1..=255, ..] | [1..=255, 0, 0, 0, ..] => {
            Some(UTF_32)
        }
        // Without a mark: characters of ASCII, each with a zero byte.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=255, 0, 1..=255, ..] | [1..=255, 0, 1..=255, 0, ..] => {
            Some(UTF_16)
        }
        _ => None,
    }
}

/// `name=value`, percent-encoded: without white space, quotes and brackets in the part that is read.
fn form(text: &[u8]) -> Option<&'static str> {
    let is_of_form = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%+*&=[]:/!$'(),;@?".contains(byte);
    let equals = memchr::memchr(b'=', text)?;
    let begins = text.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'%'));
    if !begins || !text.iter().all(is_of_form) {
        return None;
    }
    Some(if &text[..equals] == b"payload" { FORM_PAYLOAD } else { FORM })
}

/// The syntax of other languages where JSON expects a value or a name.
fn token(text: &[u8], offset: usize) -> Option<&'static str> {
    const TOKENS: [(&[u8], &str); 11] = [
        (b"NaN", NOT_A_NUMBER),
        (b"nan", NOT_A_NUMBER),
        (b"Infinity", NOT_A_NUMBER),
        (b"inf", NOT_A_NUMBER),
        (b"None", PYTHON),
        (b"True", PYTHON),
        (b"False", PYTHON),
        (b"undefined", UNDEFINED),
        (b"'", SINGLE_QUOTE),
        (b"//", COMMENT),
        (b"\0", ZERO),
    ];
    let at = |start: usize| {
        let rest = text.get(start..)?;
        TOKENS.iter().find(|(token, _)| rest.starts_with(token)).map(|(_, explanation)| *explanation)
    };
    let is_behind_comma = || text.get(..offset).is_some_and(|before| before.trim_ascii_end().ends_with(b","));
    if matches!(text.get(offset), Some(b'}' | b']')) && is_behind_comma() {
        return Some(LAST_COMMA);
    }
    // `nan` is a fault at its second character: it could have been `null`.
    at(offset).or_else(|| at(offset.checked_sub(1)?).filter(|found| *found == NOT_A_NUMBER))
}

fn has_ignoring_case(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(text: impl AsRef<[u8]>) -> String {
        crate::check(text.as_ref()).unwrap_err().detail.into_owned()
    }

    fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn formats_are_named() {
        for (text, expected) in [
            (b"payload=%7B%22a%22%3A1%7D".to_vec(), FORM_PAYLOAD),
            (b"ToCountry=US&From=%2B15551234567&Body=".to_vec(), FORM),
            (b"token=x&text=hi+there".to_vec(), FORM),
            (b"from=a&to=b".to_vec(), FORM),
            (b"--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{}\r\n--X--\r\n".to_vec(), MULTIPART),
            (b"\x1f\x8b\x08\0\0\0\0\0".to_vec(), GZIP),
            (b"\x28\xb5\x2f\xfd\x20\x01".to_vec(), ZSTD),
            (b"\x78\x9c\xab\xae".to_vec(), ZLIB),
            (utf_16("\u{feff}{\"a\":1}", u16::to_le_bytes), UTF_16),
            (utf_16("\u{feff}{\"a\":1}", u16::to_be_bytes), UTF_16),
            (utf_16("{\"a\":\"é\"}", u16::to_le_bytes), UTF_16),
            (utf_16("{\"a\":1}", u16::to_be_bytes), UTF_16),
            (b"<?xml version=\"1.0\"?>".to_vec(), MARKUP),
            (b"\x1e{\"a\":1}\n".to_vec(), SEQUENCE),
            (b"\x92\xd7\0\x65\x53\xf1\0\0\0\0\0\x81\xa3log\xa1a".to_vec(), MESSAGE_PACK),
        ] {
            assert_eq!(detail(&text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn values_of_other_languages_are_named() {
        for (text, expected) in [
            ("{\"a\": NaN}", NOT_A_NUMBER),
            ("[1, Infinity]", NOT_A_NUMBER),
            ("-Infinity", NOT_A_NUMBER),
            ("nan", NOT_A_NUMBER),
            ("{\"a\": None}", PYTHON),
            ("[True]", PYTHON),
            ("{'a': 1}", SINGLE_QUOTE),
            ("{\"a\": undefined}", UNDEFINED),
            ("// words\n{}", COMMENT),
            ("{\"a\":1}\0{\"a\":2}\0", ZERO),
            ("{\"a\": 1,\n}", LAST_COMMA),
            ("[1,]", LAST_COMMA),
        ] {
            assert_eq!(detail(text), expected, "{text}");
        }
    }

    #[test]
    fn other_faults_name_the_expected_json() {
        for (text, expected) in [
            ("plain words = no form", "found a word without double quotes; JSON expects a value"),
            ("a", "found a word without double quotes; JSON expects a value"),
            ("x=\"1\"", "found a word without double quotes; JSON expects a value"),
            ("{\"payload=\": x}", "found a word without double quotes; JSON expects a value"),
            ("--", "the number is invalid"),
            ("[1 2]", "found a digit; JSON expects a comma or `]`"),
            ("nul1", "found a word without double quotes; JSON expects a value"),
        ] {
            assert!(detail(text).starts_with(expected), "{text}: {}", detail(text));
        }
        assert_eq!(detail(b"\"\xff\""), "the text is not UTF-8");
    }
}
