//! Counts in messages: "1 event", "2 events".

use std::fmt;

/// A count with its noun, which is given in the singular. Its plural ends in `s`.
pub fn counted<N: PartialEq + From<u8> + fmt::Display>(count: N, noun: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let ending = if count == N::from(1) { "" } else { "s" };
        write!(f, "{count} {noun}{ending}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        let words = [0_u64, 1, 2].map(|count| counted(count, "dead letter").to_string());
        assert_eq!(words, ["0 dead letters", "1 dead letter", "2 dead letters"]);
    }
}
