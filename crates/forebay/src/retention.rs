//! The sinks of this process that delete old rows by themselves: their metric, and the log of what keeps them from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sink::Sink;

use crate::log;
use crate::metrics::text_format::Exposition;

/// How often the sinks are asked for messages.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The sinks in use, by name. Cheap to clone: the clones share it.
#[derive(Clone, Default)]
pub(crate) struct RetentionBoard(Arc<Mutex<Vec<(Arc<str>, Sink)>>>);

impl RetentionBoard {
    /// Replaces the sinks.
    pub(crate) fn show(&self, sinks: impl IntoIterator<Item = (Arc<str>, Sink)>) {
        *self.sinks() = sinks.into_iter().filter(|(_, sink)| sink.retention().is_some()).collect();
    }

    fn sinks(&self) -> MutexGuard<'_, Vec<(Arc<str>, Sink)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the metric.
    pub(crate) fn render(&self, text: &mut Exposition) {
        let help = "Rows that a sink has deleted because they were older than its keep.";
        text.counter("forebay_retention_deleted_rows_total", help, |series| {
            for (name, sink) in &*self.sinks() {
                let Some(retention) = sink.retention() else { continue };
                series.count(&[("sink", name)], retention.deleted.get());
            }
        });
    }

    /// Logs messages until the future is dropped.
    pub(crate) async fn follow(self) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            for (name, sink) in &*self.sinks() {
                if let Some(message) = sink.retention().and_then(sink::Retention::take_message) {
                    log::warning(format_args!("sink {name}: {message}"));
                }
            }
        }
    }
}
