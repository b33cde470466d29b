//! Whether the gateway can accept events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eventlog::Shard;

/// Whether the gateway can accept events, shared by all shards. Only a full disk can recover: a stop and a failed journal are final.
pub struct Readiness {
    is_stopping: AtomicBool,
    shards: Arc<[Arc<Shard>]>,
}

impl Readiness {
    pub(crate) fn new(shards: Arc<[Arc<Shard>]>) -> Self {
        Self { is_stopping: AtomicBool::new(false), shards }
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the gateway has announced its stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Why no events are accepted, if so.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        let any = |is_so: fn(&Shard) -> bool| self.shards.iter().any(|shard| is_so(shard));
        if any(Shard::has_failed) {
            return Some("the journal failed, and the server is about to restart: retry later");
        }
        if self.is_stopping() {
            return Some("the server is stopping");
        }
        any(Shard::is_short_of_space).then_some("the disk is full: free space on it")
    }
}
