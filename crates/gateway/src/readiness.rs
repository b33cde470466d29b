//! Whether the gateway can take events.

use std::sync::atomic::{AtomicU8, Ordering};

const READY: u8 = 0;
const STOPPING: u8 = 1;
const FAILED: u8 = 2;

/// Shared by all shards. A state only ever gets worse.
#[derive(Debug, Default)]
pub(crate) struct Readiness(AtomicU8);

impl Readiness {
    pub(crate) fn stop(&self) {
        self.0.fetch_max(STOPPING, Ordering::Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.0.fetch_max(FAILED, Ordering::Relaxed);
    }

    /// Why no events can be taken, if so.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) {
            READY => None,
            STOPPING => Some("the server is stopping"),
            _ => Some("the journal failed; the server is about to restart"),
        }
    }
}
