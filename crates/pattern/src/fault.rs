//! The fault of a regular expression, and its place.

use regex_syntax::{Error, Parser};

/// The number of characters that are shown.
const SHOWN_CHARACTERS_MAX: usize = 20;

/// Why the engine rejects the expression: the reason, the number of the character, and the text there. `None` if the
/// syntax is valid.
#[must_use]
pub fn find_fault(text: &str) -> Option<String> {
    let (reason, place) = match Parser::new().parse(text).err()? {
        Error::Parse(error) => (error.kind().to_string(), *error.span()),
        Error::Translate(error) => (error.kind().to_string(), *error.span()),
        other => return Some(other.to_string()),
    };
    let (start, end) = (place.start.offset, place.end.offset);
    let number = text.get(..start)?.chars().count() + 1;
    let shown: String = text.get(start..end)?.chars().take(SHOWN_CHARACTERS_MAX).collect();
    Some(if shown.is_empty() {
        format!("{reason}, at its end")
    } else {
        format!("{reason}, at character {number} (`{shown}`)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_and_place_are_reported() {
        for (text, reason, place) in [
            ("é(", "unclosed group", "character 2 (`(`)"),
            ("[z-a]", "invalid character class range", "character 2 (`z-a`)"),
            ("(?=a)", "look-around", "character 1 (`(?=`)"),
        ] {
            let found = find_fault(text).unwrap();
            assert!(found.starts_with(reason) && found.ends_with(&format!(", at {place}")), "{text}: {found}");
        }
        assert_eq!(find_fault("a(b)?"), None);
    }
}
