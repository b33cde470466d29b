//! The report of a failed journal to the process.

use journal::CommitError;
use tokio::sync::watch;

/// Reports that a journal has failed: the process must end, so recovery reads the disk again.
#[derive(Clone, Debug)]
pub(crate) struct JournalFailure(pub(crate) watch::Sender<Option<String>>);

impl JournalFailure {
    pub(crate) fn report(&self, error: &CommitError) {
        // The first reason counts: later failures follow from it.
        self.0.send_if_modified(|reason| {
            let first = reason.is_none();
            reason.get_or_insert_with(|| error.to_string());
            first
        });
    }
}
