//! External texts (of stores, clients) for logs, responses and terminals: control characters become visible escapes.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with JSON escapes instead of characters that have an effect and no shape. These are control characters (C0,
/// DEL, C1: `\u001b` begins the commands of terminals), line breaks (which would forge lines of a log), and characters
/// that reorder or hide the text around them.
#[must_use]
pub fn escape_control(text: &str) -> Cow<'_, str> {
    // Few texts have such a character, and most are ASCII.
    let Some(first) = text.find(has_effect) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for character in text[first..].chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            character if has_effect(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a text can't fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            character => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

const fn has_effect(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, embeddings, overrides and isolates of direction; separators of lines and paragraphs.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Characters without a shape, except the joiners that scripts need.
        | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_with_an_effect_are_escaped() {
        for (text, shown) in [
            ("\u{1b}[31mred\u{7}", "\\u001b[31mred\\u0007"),
            ("a\r\n2026 ERROR forged\tb", "a\\r\\n2026 ERROR forged\\tb"),
            ("\u{9b}31m\u{7f}\0", "\\u009b31m\\u007f\\u0000"),
            ("user\u{202e}nimda\u{2066}x\u{200b}\u{feff}", "user\\u202enimda\\u2066x\\u200b\\ufeff"),
            ("\u{2028}\u{e0041}", "\\u2028\\udb40\\udc41"),
        ] {
            assert_eq!(escape_control(text), shown);
        }
        for text in ["", "plain: \"quoted\" \\ /", "日本語 é נ म\u{200d}़", "👩\u{200d}🚀"] {
            assert!(matches!(escape_control(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }
}
