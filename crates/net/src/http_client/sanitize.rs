//! A server's error message, as it can be shown.

/// Bytes that are kept: some quote a part of what they were sent.
const BYTES_MAX: usize = 1_000;

/// The message on one line, and bounded.
#[must_use]
pub fn shortened(words: &str) -> String {
    let mut words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() > BYTES_MAX {
        let end = (0..=BYTES_MAX).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_between_characters() {
        let cut = shortened(&"é".repeat(BYTES_MAX));
        assert!(cut.len() <= BYTES_MAX + '…'.len_utf8() && cut.ends_with("é…"));
        assert_eq!(shortened("é"), "é");
    }
}
