//! Phrases that are right where they are, although a rule lists them.

use crate::tidy::Finding;

/// The file, the text that the rule quotes, and the reason.
pub(super) type Allowed = (&'static str, &'static str, &'static str);

pub(super) const ALLOWED: &[Allowed] = &[
    ("crates/cli/src/example/files.rs", "refused", "a file of a test case"),
    ("crates/cli/src/flags/mod.rs", "refused", "a flag and a file in an example"),
    ("crates/cli/src/tap.rs", "refused", "a point of the API"),
    ("crates/forebay/tests/it/dead.rs", "letters", "a member of the API's JSON"),
    ("crates/forebay/tests/it/load_refused.rs", "refused", "a member of the API's JSON"),
    ("crates/forebay/tests/it/logging.rs", "refused", "a field of a log line"),
    ("crates/forebay/tests/it/transforms.rs", "refused", "the output of `forebay test`"),
    ("crates/load/src/bench/client.rs", "refused", "a member of the API's JSON"),
    ("crates/load/src/loader/batch_result.rs", "refused", "a member of the API's JSON"),
];
const ALLOWED_MAX: usize = 150;
const PATH: &str = "xtask/src/tidy/prose/allowed.rs";

/// The list, and which entries were used.
pub(super) struct AllowList {
    entries: &'static [Allowed],
    used: Vec<bool>,
}

impl AllowList {
    pub(super) fn new(entries: &'static [Allowed]) -> Self {
        Self { entries, used: vec![false; entries.len()] }
    }

    pub(super) fn allows(&mut self, path: &str, quoted: &str) -> bool {
        let is_entry = |entry: &Allowed| entry.0 == path && entry.1.eq_ignore_ascii_case(quoted);
        let Some(at) = self.entries.iter().position(is_entry) else { return false };
        self.used[at] = true;
        true
    }

    /// Entries that allow nothing, or are too many.
    pub(super) fn faults(&self) -> Vec<Finding> {
        let finding = |message| Finding { path: PATH.to_owned(), line: 0, message };
        let unused = self.entries.iter().zip(&self.used).filter(|(_, used)| !**used);
        let mut faults: Vec<_> = unused
            .map(|((path, phrase, _), _)| finding(format!("{path} has no \"{phrase}\": delete the entry")))
            .collect();
        if self.entries.len() > ALLOWED_MAX {
            faults.push(finding(format!("{} entries, at most {ALLOWED_MAX}", self.entries.len())));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_allows_one_phrase_in_one_file() {
        let mut list = AllowList::new(&[("docs/a.md", "hole", "a range without data in a sparse file")]);
        assert!(!list.allows("docs/b.md", "hole") && !list.allows("docs/a.md", "sound"));
        assert_eq!(list.faults().len(), 1, "unused");
        assert!(list.allows("docs/a.md", "Hole") && list.allows("docs/a.md", "hole"));
        assert!(list.faults().is_empty());
    }

    #[test]
    fn list_has_a_limit() {
        static LONG: [Allowed; ALLOWED_MAX + 1] =
            [("docs/a.md", "hole", "a range without data in a sparse file"); ALLOWED_MAX + 1];
        let faults = AllowList::new(&LONG).faults();
        assert!(faults.last().is_some_and(|fault| fault.message == "151 entries, at most 150"), "{faults:?}");
        assert_eq!(AllowList::new(&LONG[1..]).faults().len(), ALLOWED_MAX, "unused, each");
    }

    #[test]
    fn each_entry_has_a_reason() {
        for (path, phrase, reason) in ALLOWED {
            assert!(reason.split(' ').count() > 1, "{path}: {phrase}");
        }
    }
}
