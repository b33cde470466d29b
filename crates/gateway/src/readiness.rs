//! Whether the gateway can accept events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use eventlog::Shard;

const READY: u8 = 0;
const STOPPING: u8 = 1;
const FAILED: u8 = 2;

/// Whether the gateway can accept events, shared by all shards. Only a full disk can recover; the other states only get worse.
pub struct Readiness {
    state: AtomicU8,
    shards: Arc<[Arc<Shard>]>,
}

impl Readiness {
    pub(crate) fn new(shards: Arc<[Arc<Shard>]>) -> Self {
        Self { state: AtomicU8::new(READY), shards }
    }

    pub(crate) fn stop(&self) {
        self.state.fetch_max(STOPPING, Ordering::Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.state.fetch_max(FAILED, Ordering::Relaxed);
    }

    /// Whether it has announced its stop, or has failed.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.load(Ordering::Relaxed) != READY
    }

    /// Why no events can be taken, if so.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self.state.load(Ordering::Relaxed) {
            READY => self.shards.iter().any(|shard| shard.is_short_of_space()).then_some("the disk is full"),
            STOPPING => Some("the server is stopping"),
            _ => Some("the journal failed; the server is about to restart"),
        }
    }
}
