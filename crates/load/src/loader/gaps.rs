//! What a load that follows a file may have left unread: said when it is noticed, and counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Notify;

/// Where it is said and counted.
#[derive(Clone, Copy)]
pub(super) struct Gaps<'a> {
    pub(super) notify: Notify<'a>,
    pub(super) count: &'a AtomicU64,
}

impl Gaps<'_> {
    /// Lines may be missing: `message` says which, and why.
    pub(super) fn tell(&self, message: &str) {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.notify)(message);
    }
}
