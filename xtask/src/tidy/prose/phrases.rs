//! Finds the phrases of the list in a text.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::phrase_list::{PHRASES, USUAL};

/// A phrase that a text has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundPhrase {
    /// Its bytes in the text.
    pub(super) at: Range<usize>,
    /// What to write.
    pub(super) instead: &'static str,
}

/// The words that can be at one place of a phrase.
struct Place {
    words: Vec<&'static str>,
    is_optional: bool,
}

struct Phrase {
    places: Vec<Place>,
    /// None for a usual phrase.
    instead: Option<&'static str>,
}

/// All phrases by their first word.
static BY_FIRST_WORD: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let listed = PHRASES.iter().map(|(phrases, instead)| (*phrases, Some(*instead)));
    let mut by_first_word: HashMap<_, Vec<_>> = HashMap::new();
    for (phrases, instead) in listed.chain(USUAL.iter().map(|phrases| (*phrases, None))) {
        for phrase in phrases.split('|') {
            let first = phrase.split(' ').next().unwrap_or_default();
            for word in first.split('/') {
                by_first_word.entry(word).or_default().push(Phrase { places: places(phrase), instead });
            }
        }
    }
    by_first_word
});

fn places(phrase: &'static str) -> Vec<Place> {
    let place = |words: &'static str| {
        let required = words.strip_suffix('?');
        Place { words: required.unwrap_or(words).split('/').collect(), is_optional: required.is_some() }
    };
    phrase.split(' ').map(place).collect()
}

/// A word of a text.
struct Word {
    at: Range<usize>,
    /// Whether only white space divides it from the word before.
    follows: bool,
}

/// The listed phrases in a text, without those within a usual phrase.
pub(super) fn listed_phrases(text: &str) -> Vec<FoundPhrase> {
    let text = text.to_ascii_lowercase();
    let words = words(&text);
    let mut found = Vec::new();
    let (mut usual_until, mut at) = (0, 0);
    while at < words.len() {
        let (mut longest, mut instead) = (0, None);
        for phrase in BY_FIRST_WORD.get(&text[words[at].at.clone()]).into_iter().flatten() {
            let Some(rest) = length_of(&phrase.places[1..], &words[at + 1..], &text) else { continue };
            let length = rest + 1;
            match phrase.instead {
                None => usual_until = usual_until.max(at + length),
                Some(_) if length > longest => (longest, instead) = (length, phrase.instead),
                Some(_) => {}
            }
        }
        if let Some(instead) = instead.filter(|_| at + longest > usual_until) {
            found.push(FoundPhrase { at: words[at].at.start..words[at + longest - 1].at.end, instead });
        }
        at += longest.max(1);
    }
    found
}

/// How many of the words the places match at most.
fn length_of(places: &[Place], words: &[Word], text: &str) -> Option<usize> {
    let Some((place, places)) = places.split_first() else { return Some(0) };
    let skipped = if place.is_optional { length_of(places, words, text) } else { None };
    let matches = |word: &&Word| word.follows && place.words.contains(&&text[word.at.clone()]);
    let used = words.first().filter(matches).and_then(|_| length_of(places, &words[1..], text));
    used.map(|length| length + 1).max(skipped)
}

/// Words with a hyphen are one. An apostrophe divides words, without a gap.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut begin, mut follows) = (None, false);
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        if character.is_alphanumeric() || character == '_' || character == '-' {
            begin.get_or_insert(at);
            continue;
        }
        if let Some(begin) = begin.take() {
            words.push(Word { at: begin..at, follows });
            follows = true;
        }
        follows &= character.is_whitespace() || character == '\'';
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        listed_phrases(text).into_iter().map(|found| text[found.at].to_owned()).collect()
    }

    /// The first words of each place, and their last: `go/goes on` is `go on` and `goes on`.
    fn ways(phrase: &'static str) -> [String; 2] {
        let places = places(phrase);
        let join = |word: fn(&Place) -> &'static str| places.iter().map(word).collect::<Vec<_>>().join(" ");
        [join(|place| place.words[0]), join(|place| place.words[place.words.len() - 1])]
    }

    #[test]
    fn each_phrase_of_the_list_is_found() {
        let count = PHRASES.iter().flat_map(|(phrases, _)| phrases.split('|')).count();
        assert!(count >= 92, "the list may only grow: {count}");
        for (phrases, _) in PHRASES {
            for way in phrases.split('|').flat_map(ways) {
                assert_eq!(found(&format!("It, {way}, it")), vec![way.clone()], "{way}");
                let broken = way.replace(' ', "\n  ");
                assert_eq!(found(&format!("It {broken} it")).len(), 1, "{broken:?}");
                assert_eq!(found(&way.to_uppercase()).len(), 1, "{way}");
                assert!(found(&format!("un{way} {way}-un")).is_empty() || way.contains(' '), "{way}");
            }
        }
    }

    #[test]
    fn usual_phrases_are_not_found() {
        for way in USUAL.iter().flat_map(|phrases| phrases.split('|')).flat_map(ways) {
            assert_eq!(found(&format!("A {way} it")), [""; 0], "{way}");
        }
        for text in [
            "connection refused",
            "behind NAT",
            "behind nginx",
            "behind its\nload balancer",
            "Dead\nletters",
            "refused_count",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn neighbours_of_usual_phrases_are_found() {
        for text in ["the post was refused", "behind the cursor", "live letters", "its turn", "no more of them"] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        assert_eq!(found("It goes, on and on"), [""; 0]);
        assert_eq!(found("given up, taken for"), ["given up", "taken for"]);
        assert_eq!(found("dead letters behind letters"), ["behind", "letters"]);
        assert_eq!(found(concat!("in the store", "'s words")).len(), 1);
        assert_eq!(found("of its own words"), ["of its own"]);
    }
}
