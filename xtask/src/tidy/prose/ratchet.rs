//! Files that broke the rules of prose when these came, with the count of breaches in `ratchet.txt`: a count may only fall.
//!
//! To write the file from scratch: `cd xtask/src/tidy/prose && : > ratchet.txt && cargo xtask tidy | sed -nE 's/^([^:]+):[0-9]+: (prose_words|[a-z]+_length|heading_words|test_names): .*/\1/p' | sort | uniq -c > counts; mv counts ratchet.txt`

use std::collections::BTreeMap;

use super::Breach;
use crate::tidy::Finding;
use crate::tidy::source::Source;

/// From the root of the workspace. Without the file no breach is accepted.
pub(in super::super) const PATH: &str = "xtask/src/tidy/prose/ratchet.txt";

/// Accepted breaches by file.
pub(super) struct Counts<'a>(BTreeMap<&'a str, usize>);

impl<'a> Counts<'a> {
    /// Each line has a count and a path.
    pub(super) fn parse(text: &'a str) -> Self {
        let lines = text.lines().filter_map(|line| line.trim_start().split_once(' '));
        Self(lines.filter_map(|(count, path)| Some((path, count.parse().ok()?))).collect())
    }

    /// The findings of a file with these breaches.
    pub(super) fn apply(&mut self, source: &Source, breaches: Vec<Breach>) -> Vec<Finding> {
        let accepted = self.0.remove(source.path.as_str()).unwrap_or(0);
        if breaches.len() < accepted {
            let message = format!("{} breaches, {accepted} before: lower the count in {PATH}", breaches.len());
            return vec![source.finding(0, message)];
        }
        if breaches.len() == accepted {
            return Vec::new();
        }
        let finding = |breach: Breach| {
            let Breach { rule, line, quoted, instead } = breach;
            source.finding(line, format!("{rule}: \"{quoted}\" → write {instead}"))
        };
        breaches.into_iter().map(finding).collect()
    }

    /// Counts of files that aren't there.
    pub(super) fn unused(&self) -> Vec<Finding> {
        let message = || format!("no such file: delete it in {PATH}");
        self.0.keys().map(|path| Finding { path: (*path).to_owned(), line: 0, message: message() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(ratchet: &str, breaches: usize) -> usize {
        let breach = |_| Breach { rule: "prose_words", line: 1, quoted: String::new(), instead: String::new() };
        let source = Source::new("docs/a.md", String::new());
        let mut counts = Counts::parse(ratchet);
        counts.apply(&source, (0..breaches).map(breach).collect()).len() + counts.unused().len()
    }

    #[test]
    fn count_may_only_fall() {
        let ratchet = "      2 docs/a.md\n";
        assert_eq!(findings(ratchet, 2), 0);
        assert_eq!(findings(ratchet, 3), 3);
        assert_eq!(findings(ratchet, 1), 1, "lower it");
        assert_eq!(findings("", 1), 1);
        assert_eq!(findings("1 docs/b.md", 0), 1, "delete it");
    }
}
