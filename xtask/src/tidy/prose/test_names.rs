//! Names of tests: what does what, and when.

use super::Breach;
use super::phrases::listed_phrases;
use crate::tidy::code::is_word;

const WORDS_MAX: usize = 12;
/// A test's name says the subject.
const NO_SUBJECTS: &[&str] = &["who", "what"];

/// The names of tests in code without comments and literals.
pub(super) fn test_names(code: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let ends = ["#[test]", "#[tokio::test"].map(|end| code.match_indices(end));
    for (at, _) in ends.into_iter().flatten() {
        let Some(begin) = code[at..].find("fn ").map(|found| at + found + 3) else { continue };
        let name = code[begin..].split(|c| !is_word(c)).next().unwrap_or_default();
        let breach = |quoted: &str, instead: String| Breach {
            rule: "test_names",
            line: code[..begin].matches('\n').count() + 1,
            quoted: quoted.to_owned(),
            instead: format!("{instead}, in `{name}`"),
        };
        let words = name.replace('_', " ");
        let found = listed_phrases(&words).into_iter();
        breaches.extend(found.map(|found| breach(&words[found.at.clone()], found.instead.to_owned())));
        let vague = words.split(' ').filter(|word| NO_SUBJECTS.contains(word));
        breaches.extend(vague.map(|word| breach(word, "the subject".to_owned())));
        let count = words.split(' ').count();
        if count > WORDS_MAX {
            breaches.push(breach(name, format!("at most {WORDS_MAX} words: it has {count}")));
        }
    }
    breaches
}
