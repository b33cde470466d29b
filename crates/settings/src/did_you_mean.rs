//! Suggestions for misspelt words.

/// The known word nearest to `word`, if it is near enough for a typo.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // A typo changes at most a third of the letters.
    let farthest = (word.chars().count() / 3).max(1);
    known
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= farthest && *distance < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let known = ["listen", "admin", "open", "shards", "id", "type_pointer"];
        for (word, meant) in [
            ("lisen", Some("listen")),
            ("lsiten", Some("listen")),
            ("shard", Some("shards")),
            ("type-pointer", Some("type_pointer")),
            ("ids", Some("id")),
            ("schema", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), meant, "{word}");
        }
    }
}
