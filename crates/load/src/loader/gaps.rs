//! Parts of a followed file that a load may have left unread: reported when noticed, and counted.

use super::{LoadCounters, Notify};

/// Reports and counts gaps.
#[derive(Clone, Copy)]
pub(super) struct Gaps<'a> {
    pub(super) notify: Notify<'a>,
    pub(super) counters: &'a LoadCounters,
}

impl Gaps<'_> {
    /// Lines may be missing: `message` says which, and why.
    pub(super) fn report(&self, message: &str) {
        self.counters.change(|counts| counts.gaps += 1);
        (self.notify)(message);
    }
}
