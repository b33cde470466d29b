//! The sinks of this process that delete old rows: the count of rows, and the log of failures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sink::Sink;

/// How often the sinks are asked for messages.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Sinks with their names.
type Named = Vec<(Arc<str>, Sink)>;

/// The sinks in use. Cheap to clone: the clones share it.
#[derive(Clone, Default)]
pub(crate) struct RetentionBoard(Arc<Mutex<Named>>);

impl RetentionBoard {
    /// Replaces the sinks.
    pub(crate) fn show(&self, sinks: impl IntoIterator<Item = (Arc<str>, Sink)>) {
        *self.sinks() = sinks.into_iter().filter(|(_, sink)| sink.retention().is_some()).collect();
    }

    fn sinks(&self) -> MutexGuard<'_, Named> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sinks with the rows that each has deleted.
    pub(crate) fn deleted(&self) -> Vec<(Arc<str>, u64)> {
        let sinks = self.sinks();
        sinks.iter().filter_map(|(name, sink)| Some((name.clone(), sink.retention()?.deleted.get()))).collect()
    }

    /// Logs messages until the future is dropped.
    pub(crate) async fn follow(self) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            for (name, sink) in &*self.sinks() {
                if let Some(message) = sink.retention().and_then(sink::Retention::take_message) {
                    tracing::warn!(sink = &**name, "{message}");
                }
            }
        }
    }
}
