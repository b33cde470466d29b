//! A file whose opening hangs, as on a network file system without its server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The file that hangs, and the calls that wait for it.
#[derive(Debug, Default)]
pub(super) struct Hang {
    state: Mutex<HangState>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct HangState {
    path: Option<PathBuf>,
    waiting: usize,
}

impl Hang {
    fn state(&self) -> MutexGuard<'_, HangState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while this file hangs.
    pub(super) fn pass(&self, path: &Path) {
        let mut state = self.state();
        while state.path.as_deref() == Some(path) {
            state.waiting += 1;
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

/// Opening one file of the simulated disk blocks until this value is dropped.
#[derive(Debug)]
pub struct HangingFile(Arc<Hang>);

impl HangingFile {
    pub(super) fn new(hang: &Arc<Hang>, path: &Path) -> Self {
        hang.state().path = Some(path.to_owned());
        Self(hang.clone())
    }

    /// Whether a call waits for the file.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.0.state().waiting > 0
    }
}

impl Drop for HangingFile {
    fn drop(&mut self) {
        self.0.state().path = None;
        self.0.released.notify_all();
    }
}
