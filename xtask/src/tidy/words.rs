//! Words that no file may have: notes that belong in an issue, and paths of a developer's machine.

use super::Finding;
use super::code::lines_with;
use super::source::Source;

/// Each in two parts, or this file would break its own rule.
const WORDS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "open an issue instead"),
    (concat!("FIX", "ME"), "fix it, or open an issue"),
    (concat!("/wo", "rk/"), "a path of a developer's machine"),
    (concat!("/tm", "p/t-"), "a path of a developer's machine"),
    (concat!("/ro", "ot/"), "a path of a developer's machine"),
];

/// The one path out of the repository that may be named: where tests look for real records.
const RECORDS: &str = concat!("../sha", "red/data");
const OUTSIDE: &str = concat!("../sha", "red");

/// The rule.
pub(super) fn forbidden_words(source: &Source) -> Vec<Finding> {
    let words = WORDS.iter().flat_map(|(word, why)| {
        lines_with(&source.text, word).into_iter().map(move |line| source.finding(line, format!("`{word}`: {why}")))
    });
    let without_records = source.text.replace(RECORDS, "");
    let outside = lines_with(&without_records, OUTSIDE).into_iter();
    let outside = outside.map(|line| source.finding(line, format!("`{OUTSIDE}`: users clone the project alone")));
    words.chain(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        forbidden_words(&Source::new("README.md", text.into())).len()
    }

    #[test]
    fn each_word_is_found() {
        for (word, _) in WORDS {
            assert_eq!(
                count(&format!("see {word}x y\n{word}")),
                count(&format!("{word} z")) * 2 - usize::from(is_name(word))
            );
            assert_eq!(count(&format!("a\n{word}: b")), 1, "{word}");
        }
        assert_eq!(count(&format!("a {OUTSIDE}/notes.md")), 1);
        assert_eq!(count(&format!("a {RECORDS} b")), 0);
        assert_eq!(count("todo: lower case is English"), 0);
    }

    /// A name isn't found as the beginning of a longer one, a path is.
    fn is_name(word: &str) -> bool {
        word.ends_with(char::is_alphanumeric)
    }
}
