//! serde_json's words for a fault of syntax. Whoever sends nothing but faults gets words for each: to make a text of
//! every error, and copies of it, would cost ten times what finding the fault did.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// What stands between the fault and its place.
const PLACE: &str = " at line ";
/// What serde_json's words begin with where the text ends too early.
const END: &str = "EOF while parsing ";

/// The words that are kept as they are. Another one costs a copy of it.
const KNOWN: [&str; 9] = [
    "expected value",
    "expected ident",
    "expected `:`",
    "expected `,` or `]`",
    "expected `,` or `}`",
    "key must be a string",
    TRAILING,
    "invalid escape",
    "invalid number",
];

/// What is said of bytes behind a whole value.
pub(super) const TRAILING: &str = "trailing characters";
/// What is said of a text that ends too early begins like this.
pub(super) const ENDS_WITHIN: &str = "the text ends within ";

/// What was being read when the text ended, and what is said of that.
const ENDS: [(&str, &str); 4] = [
    ("a value", "the text ends within a value"),
    ("a list", "the text ends within a list"),
    ("an object", "the text ends within an object"),
    ("a string", "the text ends within a string"),
];

/// Words with room for all that serde_json says.
pub(super) struct Words {
    bytes: [u8; 96],
    length: usize,
}

impl Words {
    /// Those of `error`, without the place.
    pub(super) fn of(error: &serde_json::Error) -> Self {
        let mut words = Self { bytes: [0; _], length: 0 };
        // It ends with an error on purpose: behind the words stands the place, which is made of numbers at some cost.
        let _ = write!(words, "{error}");
        words
    }

    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).unwrap_or("not JSON")
    }

    /// The words for the sender of the text.
    pub(super) fn detail(&self) -> Cow<'static, str> {
        let words = self.as_str();
        match words.strip_prefix(END) {
            Some(what) => match ENDS.iter().find(|(known, _)| *known == what) {
                Some((_, detail)) => Cow::Borrowed(*detail),
                None => Cow::Owned(format!("{ENDS_WITHIN}{what}")),
            },
            None => match KNOWN.iter().find(|known| **known == words) {
                Some(known) => Cow::Borrowed(*known),
                None => Cow::Owned(words.to_owned()),
            },
        }
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
    use serde::de::IgnoredAny;

    use super::*;

    fn words(text: &str) -> Words {
        Words::of(&serde_json::from_str::<IgnoredAny>(text).unwrap_err())
    }

    #[test]
    fn they_are_those_of_the_error_without_its_place() {
        for text in ["", "[", "{", "\"", "x", "nul", "{\"a\" 1}", "[1 2]", "{\"a\":1 2}", "{1:2}", "[1,]", "1 2"] {
            let error = serde_json::from_str::<IgnoredAny>(text).unwrap_err().to_string();
            assert_eq!(Some(words(text).as_str()), error.split(PLACE).next(), "{text}");
        }
        let control = "control character (\\u0000-\\u001F) found while parsing a string";
        assert_eq!(words("\"\n\"").as_str(), control);
        assert_eq!(words("\"\n\"").detail(), control);
    }

    /// Where serde_json changes its words, this says so.
    #[test]
    fn those_of_usual_faults_are_not_copied() {
        let texts = ["x", "nul1", "{\"a\" 1}", "[1 2]", "{\"a\":1 2}", "{1:2}", "1 2", "\"\\x\"", "01"];
        let mut met: Vec<_> = texts.iter().map(|text| words(text).detail()).collect();
        met.extend(["[", "{", "\"", "[1,"].map(|text| words(text).detail()));
        assert!(met.iter().all(|detail| matches!(detail, Cow::Borrowed(_))), "{met:?}");
        for known in KNOWN.iter().chain(ENDS.iter().map(|(_, detail)| detail)) {
            assert!(met.iter().any(|detail| detail == known), "{known}: {met:?}");
        }
    }
}
