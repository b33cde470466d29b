//! Words in prose and in headings.

use super::Breach;
use super::blocks::Shape;
use super::passages::{Origin, Passage};
use super::phrases::listed_phrases;

/// A shorter literal is a name or a part of a text.
const LITERAL_WORDS_MIN: usize = 5;
/// Words of sentences. A heading is what a reader searches for.
const SENTENCE_WORDS: &[&str] = &["who", "what", "where", "it", "that", "is", "are", "isn", "aren"];

/// No phrase of the list.
pub(super) fn prose_words(passage: &Passage) -> Vec<Breach> {
    let words = passage.plain.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    if passage.origin == Origin::Literal && words.count() < LITERAL_WORDS_MIN {
        return Vec::new();
    }
    let found = listed_phrases(&passage.plain).into_iter();
    found
        .map(|phrase| Breach {
            rule: "prose_words",
            line: passage.line_of(phrase.at.start),
            quoted: super::beginning(&passage.plain[phrase.at]),
            instead: phrase.instead.to_owned(),
        })
        .collect()
}

/// A heading is a noun that readers search for, or a question.
pub(super) fn heading_words(passage: &Passage) -> Option<Breach> {
    if passage.origin != Origin::Page || passage.shape != Shape::Heading || passage.plain.trim_end().ends_with('?') {
        return None;
    }
    let mut words = passage.plain.split(|c: char| !c.is_alphanumeric() && c != '`');
    words.any(|word| SENTENCE_WORDS.contains(&word.to_lowercase().as_str())).then(|| Breach {
        rule: "heading_words",
        line: passage.line,
        quoted: super::beginning(passage.text.trim_start_matches(['#', ' '])),
        instead: "the noun that a reader searches for, or a question".to_owned(),
    })
}
