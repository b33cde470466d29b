//! Finds tokens in texts where they don't belong, such as the path of a request.

use std::borrow::Cow;
use std::ops::Range;

use crate::secret::{DIGITS, PREFIX, TEXT_BYTES};

/// Whether a text contains a token, known here or not.
#[must_use]
pub fn contains_token(text: &str) -> bool {
    find(text).is_some()
}

/// The digits of each token in a text.
pub fn token_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + find(&text[from..])?;
        from = at + TEXT_BYTES;
        Some(at + PREFIX.len()..from)
    })
}

/// A text for responses and the log: each token in it is replaced by its prefix.
#[must_use]
pub fn hide_tokens(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for digits in token_ranges(text).collect::<Vec<_>>().into_iter().rev() {
        shown.to_mut().replace_range(digits, "…");
    }
    shown
}

/// The first byte of the first token.
fn find(text: &str) -> Option<usize> {
    let is_token = |at: &usize| {
        let digits = text.as_bytes().get(at + PREFIX.len()..at + TEXT_BYTES);
        digits.is_some_and(|digits| digits.iter().all(|digit| DIGITS.contains(&digit.to_ascii_lowercase())))
    };
    let may_begin = |window: &[u8]| window.eq_ignore_ascii_case(PREFIX.as_bytes());
    let starts = text.as_bytes().windows(PREFIX.len()).enumerate().filter(|(_, window)| may_begin(window));
    starts.map(|(at, _)| at).find(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewToken;

    #[test]
    fn token_is_found_anywhere_in_a_text() {
        let token = NewToken::of_random([7; 32]).expose().to_owned();
        for text in [token.clone(), format!("a.{token}-b"), format!("é{token}{token}"), token.to_uppercase()] {
            assert!(contains_token(&text), "{text}");
            let shown = hide_tokens(&text);
            assert!(!contains_token(&shown) && !shown.contains(&token[10..]) && shown.contains('…'), "{shown}");
        }
        for other in ["", "fb_", "fb_page.view", &token[1..], &token[..token.len() - 1], "é"] {
            assert!(!contains_token(other), "{other}");
            assert_eq!(hide_tokens(other), other);
        }
    }
}
