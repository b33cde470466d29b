//! serde_json's messages for a fault of syntax, in plain words: the text that was found, and the JSON that is expected.
//! A client may send only faults, so each message is compared without formatting its place, and costs one allocation at
//! most.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// serde_json's text between the fault and its place.
const PLACE: &str = " at line ";

/// The message for bytes after a whole value.
pub(super) const TRAILING: &str = "more text follows the end of the value; JSON expects one value";
/// The message for a text that ends too early begins like this.
pub(super) const ENDS_WITHIN: &str = "the text ends within ";
/// The message for a text that ends within a string.
pub(super) const ENDS_WITHIN_STRING: &str = "the text ends within a string, before its closing double quote";
/// The message for a text that ends within an array.
pub(super) const ENDS_WITHIN_ARRAY: &str = "the text ends within an array, before its closing `]`";
/// The message for an element or a member without a value.
pub(super) const COMMA_FOR_VALUE: &str = "found `,`; JSON expects a value before it";
/// The message for a comma before the end of an array or object.
pub(super) const LAST_COMMA: &str = "JSON has no comma after the last member or element";
/// The message for an escape that JSON doesn't have.
pub(super) const ESCAPE: &str = "a string has an invalid escape; JSON expects \\\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t, or \\u and four \
    hexadecimal digits. Write a backslash itself as \\\\";

const VALUE: &str =
    "; JSON expects a value: an object, an array, a string in double quotes, a number, true, false or null";
const NAME: &str = "; JSON expects the name of a member, in double quotes";
const SURROGATE: &str = "a string has half of a surrogate pair, which is not a character: send both halves";
const DEPTH: &str = "arrays and objects nest too deeply";
const NUMBER_NAME: &str = "the name of a member must be a number in double quotes";

/// The message for a fault.
#[derive(Clone, Copy)]
enum Message {
    /// The whole message.
    Whole(&'static str),
    /// The text that was found at the fault, and then this.
    Found(&'static str),
}
use Message::{Found, Whole};

/// All of serde_json's messages of syntax.
const MESSAGES: [(&str, Message); 23] = [
    ("expected value", Found(VALUE)),
    ("expected ident", Found(VALUE)),
    ("expected `:`", Found("; JSON expects a colon between the name and the value of a member")),
    ("expected `,` or `]`", Found("; JSON expects a comma or `]` after an element of an array")),
    ("expected `,` or `}`", Found("; JSON expects a comma or `}` after a member of an object")),
    ("expected `\"`", Found("; JSON expects a double quote")),
    ("key must be a string", Found(NAME)),
    ("trailing characters", Whole(TRAILING)),
    ("trailing comma", Whole(LAST_COMMA)),
    ("EOF while parsing a value", Whole("the text ends within a value")),
    ("EOF while parsing a list", Whole(ENDS_WITHIN_ARRAY)),
    ("EOF while parsing an object", Whole("the text ends within an object, before its closing `}`")),
    ("EOF while parsing a string", Whole(ENDS_WITHIN_STRING)),
    ("invalid escape", Whole(ESCAPE)),
    ("unexpected end of hex escape", Whole(ESCAPE)),
    (
        "invalid number",
        Whole(
            "the number is invalid; JSON expects digits, with no leading zero, and digits on both sides of a decimal point",
        ),
    ),
    ("number out of range", Whole("the number is out of range")),
    ("invalid unicode code point", Whole("the text is not UTF-8")),
    ("lone leading surrogate in hex escape", Whole(SURROGATE)),
    (
        "control character (\\u0000-\\u001F) found while parsing a string",
        Whole(
            "a string has a line break, a tab or another control character; JSON expects an escape for it, such as \\n or \\t",
        ),
    ),
    ("invalid value: expected key to be a number in quotes", Whole(NUMBER_NAME)),
    ("float key must be finite (got NaN or +/-inf)", Whole(NUMBER_NAME)),
    ("recursion limit exceeded", Whole(DEPTH)),
];

/// serde_json's message, with room for the longest.
pub(super) struct Words {
    bytes: [u8; 96],
    length: usize,
}

impl Words {
    /// The message of `error`, without the place.
    pub(super) fn of(error: &serde_json::Error) -> Self {
        let mut words = Self { bytes: [0; _], length: 0 };
        // This ends with an error on purpose: formatting the numbers of the place would cost more than finding the fault.
        let _ = write!(words, "{error}");
        words
    }

    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or("not JSON")
    }

    /// The message for the sender of `text`, which has the fault at `offset`.
    pub(super) fn detail(&self, text: &[u8], offset: usize) -> Cow<'static, str> {
        let words = self.as_str();
        match MESSAGES.iter().find(|(known, _)| *known == words) {
            Some((_, Whole(message))) => Cow::Borrowed(message),
            Some((_, Found(expected))) => {
                let (mut character, is_ident) = ([0; 4], words == "expected ident");
                Cow::Owned(["found ", found(text, offset, is_ident, &mut character), expected].concat())
            }
            // A message of a later serde_json: the test of all messages finds it.
            None => Cow::Owned(words.to_owned()),
        }
    }
}

/// The text at the fault.
fn found<'a>(text: &[u8], offset: usize, is_ident: bool, character: &'a mut [u8; 4]) -> &'a str {
    match text.get(offset) {
        // `nul1` is a fault at its last character only.
        _ if is_ident => "a word without double quotes",
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => "a word without double quotes",
        Some(b'0'..=b'9') => "a digit",
        Some(b'"') => "a double quote",
        Some(b'`') => "a backquote",
        Some(byte) if byte.is_ascii_graphic() => {
            *character = [b'`', *byte, b'`', 0];
            str::from_utf8(&character[..3]).unwrap_or_default()
        }
        Some(b'\n' | b'\r') => "a line break",
        Some(byte) if byte.is_ascii() => "a control character",
        Some(_) => "a character that JSON allows only in strings",
        None => "the end of the text",
    }
}

impl fmt::Write for Words {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + piece.len());
        let Some(room) = room.filter(|_| piece != PLACE) else { return Err(fmt::Error) };
        room.copy_from_slice(piece.as_bytes());
        self.length += piece.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::de::{Error as _, IgnoredAny};

    use super::*;

    /// Texts with each fault that a check can find, and its message.
    const FAULTS: [(&str, &str); 30] = [
        ("plain text", "found a word without double quotes; JSON expects a value: an object, an array"),
        ("no", "found a word without double quotes; JSON expects a value"),
        ("nul1", "found a word without double quotes; JSON expects a value"),
        ("tru", "the text ends within a value"),
        ("2026-11-26 12:00:00 GET /", TRAILING),
        ("# comment", "found `#`; JSON expects a value"),
        ("`a`", "found a backquote; JSON expects a value"),
        (".5", "found `.`; JSON expects a value"),
        ("é", "found a character that JSON allows only in strings; JSON expects a value"),
        ("\u{1}", "found a control character; JSON expects a value"),
        ("[1,,2]", "found `,`; JSON expects a value"),
        ("{\"a\":}", "found `}`; JSON expects a value"),
        ("{\"a\" 1}", "found a digit; JSON expects a colon between the name and the value of a member"),
        ("[1 2]", "found a digit; JSON expects a comma or `]` after an element of an array"),
        ("[\"a\"\"b\"]", "found a double quote; JSON expects a comma or `]`"),
        ("{\"a\":1 \"b\":2}", "found a double quote; JSON expects a comma or `}` after a member of an object"),
        ("{a:1}", "found a word without double quotes; JSON expects the name of a member, in double quotes"),
        ("{1:2}", "found a digit; JSON expects the name of a member"),
        ("{,}", "found `,`; JSON expects the name of a member"),
        ("1 2", TRAILING),
        ("[1,]", LAST_COMMA),
        ("{\"a\":1,}", LAST_COMMA),
        ("[", ENDS_WITHIN_ARRAY),
        ("{\"a\":1", "the text ends within an object, before its closing `}`"),
        ("\"a", ENDS_WITHIN_STRING),
        ("\"C:\\Users\"", ESCAPE),
        ("\"\\u12x4\"", ESCAPE),
        ("01", "the number is invalid"),
        ("--1", "the number is invalid"),
        ("\"a\nb\"", "a string has a line break, a tab or another control character"),
    ];

    #[test]
    fn message_names_the_found_and_expected_text() {
        for (text, expected) in FAULTS {
            let error = crate::check(text.as_bytes()).unwrap_err();
            assert!(error.detail.starts_with(expected), "{text}: {error}");
            assert!(error.detail.split_whitespace().count() <= 35, "{text}: {error}");
        }
    }

    /// Texts for the messages that only documents and keys of other kinds can have are read as those.
    #[test]
    fn all_messages_of_the_parser_are_known() {
        let of = |text: &str| Words::of(&serde_json::from_str::<IgnoredAny>(text).unwrap_err());
        let mut met: Vec<String> = FAULTS.iter().map(|(text, _)| of(text).as_str().to_owned()).collect();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_err();
        let numbers = |text: &str| serde_json::from_str::<std::collections::BTreeMap<u8, u8>>(text).unwrap_err();
        let deep = "[".repeat(200);
        for error in [
            value("[1,]"),
            value("1e999"),
            value("\"\\udc00\""),
            value("\"\\ud800\""),
            value("\"\\ud800\\u0041\""),
            value("\"\\u"),
            serde_json::from_slice::<serde_json::Value>(b"\"\xff\"").unwrap_err(),
            value(&deep),
            numbers("{\"x\":1}"),
            numbers("{\"1x\":1}"),
            serde_json::to_string(&std::collections::BTreeMap::from([(OrderedFloat, 1)])).unwrap_err(),
        ] {
            met.push(Words::of(&error).as_str().to_owned());
        }
        for words in &met {
            assert!(MESSAGES.iter().any(|(known, _)| known == words), "serde_json says {words:?}");
        }
        for (known, _) in MESSAGES {
            assert!(met.iter().any(|words| words == known), "never met: {known}");
        }
    }

    /// A key that is infinite.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct OrderedFloat;

    impl serde::Serialize for OrderedFloat {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_f64(f64::INFINITY)
        }
    }

    #[test]
    fn message_equals_the_error_without_its_place() {
        for (text, _) in FAULTS {
            let error = serde_json::from_str::<IgnoredAny>(text).unwrap_err();
            assert_eq!(Some(Words::of(&error).as_str()), error.to_string().split(PLACE).next(), "{text}");
        }
        assert_eq!(Words::of(&serde_json::Error::custom("x".repeat(200))).as_str(), "");
    }
}
