//! What somebody probably meant.

/// The one of `known` that a slip of the fingers turns into `word`, if any is near enough.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A third of the letters wrong is a slip, more is another word.
    let farthest = (word.chars().count() / 3).max(1);
    let near = known.into_iter().map(|candidate| (strsim::osa_distance(word, candidate), candidate));
    near.filter(|(distance, candidate)| *distance <= farthest && *distance < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}
