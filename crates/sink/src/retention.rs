//! A store's reports about the events that it deletes because of their age.

use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::Counter;

use crate::{Reason, make_visible};

/// The deletions of one store. The store writes them, and the process that has the sink counts and logs them.
#[derive(Debug, Default)]
pub struct Retention {
    /// Rows that were deleted since the sink was created.
    pub deleted: Counter,
    message: Mutex<Option<Reason>>,
}

impl Retention {
    /// Leaves a message for the log. It replaces one that was not read.
    pub fn report(&self, mut message: Reason) {
        make_visible(&mut message);
        *self.message() = Some(message);
    }

    /// The last message, once.
    pub fn take_message(&self) -> Option<Reason> {
        self.message().take()
    }

    fn message(&self) -> MutexGuard<'_, Option<Reason>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
