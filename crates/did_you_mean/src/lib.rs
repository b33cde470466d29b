//! The known word that a misspelt word probably means, for the help of an error.

/// The word of `known` that a typing error turns into `word`, if one is near enough.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Up to a third of the characters wrong is a typing error. More is another word.
    let farthest = (word.chars().count() / 3).max(1);
    let near = known.into_iter().map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    near.filter(|(distance, candidate)| *distance <= farthest && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_error_is_found_but_no_other_word() {
        let known = ["listen", "admin", "allow_anonymous", "shards", "id", "type_pointer"];
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
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
