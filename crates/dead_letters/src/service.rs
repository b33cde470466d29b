//! The service for the dead letters of all sinks: it lists, shows, edits, replays and drops them.

use std::sync::{Arc, Mutex, PoisonError};

use event::TypeName;
use ledger::SinkName;
use tokio::sync::oneshot;

use crate::counters::DeadCounters;
use crate::filter::{DeadFilter, DeadList};
use crate::notify::LastDead;
use crate::reader;
use crate::replay::{DeadAction, DeadCommand, DeadOutcome, SinkQueue};

/// Why dead letters can't be read now.
#[derive(Debug, thiserror::Error)]
#[error("dead letters of sink {sink}: {reason}")]
pub struct DeadError {
    pub(crate) sink: SinkName,
    pub(crate) reason: String,
}

/// The dead letters of all sinks. Cheap to clone.
#[derive(Clone, Default)]
pub struct DeadLetterService {
    /// Queues are only added: dead letters stay when their sink is removed.
    queues: Arc<Mutex<Vec<Arc<SinkQueue>>>>,
}

impl DeadLetterService {
    /// The dead letters of each sink.
    pub fn queues(&self) -> Vec<Arc<SinkQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds the dead letters of a sink.
    pub fn add(&self, queue: SinkQueue) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(queue));
    }

    fn chosen(&self, filter: &DeadFilter) -> impl Iterator<Item = Arc<SinkQueue>> {
        self.queues().into_iter().filter(|queue| filter.names(queue.dead.sink()))
    }

    pub(crate) fn find(&self, sink: &str) -> Option<Arc<SinkQueue>> {
        self.queues().into_iter().find(|queue| **queue.dead.sink() == *sink)
    }

    /// Whether there is such a sink, or was while this process ran.
    #[must_use]
    pub fn has_sink(&self, sink: &str) -> bool {
        self.find(sink).is_some()
    }

    /// The dead letters that are held now, at most `limit`. Reads the disk: call it where that may block.
    ///
    /// # Errors
    /// [`DeadError`] where a journal can't be read.
    pub fn list(&self, filter: &DeadFilter, limit: usize, with_payload: bool) -> Result<DeadList, DeadError> {
        let mut found = DeadList::default();
        for queue in self.chosen(filter) {
            let dead = &queue.dead;
            let listed = reader::list(dead, filter, limit, with_payload, &mut found);
            listed.map_err(|error| DeadError { sink: dead.sink().clone(), reason: error.to_string() })?;
        }
        Ok(found)
    }

    /// Replays, drops or edits the held dead letters that match the filter, at most `limit` of each sink, and returns
    /// the outcome. The work continues if the caller is gone.
    pub async fn act(&self, action: &DeadAction, filter: &DeadFilter, limit: u64) -> Vec<DeadOutcome> {
        let mut outcomes = Vec::new();
        for queue in self.chosen(filter) {
            let SinkQueue { dead, commands, .. } = &*queue;
            let (reply, answer) = oneshot::channel();
            let command = DeadCommand { action: action.clone(), filter: filter.clone(), limit, reply };
            let sent = commands.send(command).await.is_ok();
            let outcome = if sent { answer.await.ok() } else { None };
            outcomes.push(outcome.unwrap_or_else(|| DeadOutcome {
                failure: Some("interrupted, because Forebay is stopping: repeat the command after the restart".into()),
                ..DeadOutcome::none(dead.sink().clone())
            }));
        }
        outcomes
    }

    /// How many dead letters of a sink and type are held.
    #[must_use]
    pub fn held(&self, sink: &str, type_name: &TypeName) -> u64 {
        self.find(sink).map_or(0, |queue| queue.dead.held(type_name))
    }

    /// How many events of a sink and type became dead letters since the start of the process. A replay doesn't lower it.
    #[must_use]
    pub fn written(&self, sink: &str, type_name: &TypeName) -> u64 {
        self.find(sink).map_or(0, |queue| queue.dead.written(type_name))
    }

    /// How many positions of each sink's journal are lost, with the dead letters on them, and not accepted.
    #[must_use]
    pub fn lost(&self) -> Vec<(SinkName, u64)> {
        let lost = |queue: &Arc<SinkQueue>| queue.dead.losses().iter().map(eventlog::Loss::count).sum();
        self.queues().iter().map(|queue| (queue.dead.sink().clone(), lost(queue))).collect()
    }

    /// The newest dead letter of a sink and type since the start of the process.
    #[must_use]
    pub fn last(&self, sink: &str, type_name: &TypeName) -> Option<LastDead> {
        self.find(sink)?.dead.last(type_name)
    }

    /// How many events of a type a sink has deferred, and why the store rejects the newest.
    #[must_use]
    pub fn deferred(&self, sink: &str, type_name: &TypeName) -> (u64, Option<LastDead>) {
        self.find(sink).map_or((0, None), |queue| queue.dead.deferred_of_type(type_name))
    }

    /// Counts of the actions on each sink's dead letters since the start of the process.
    #[must_use]
    pub fn counters(&self) -> Vec<(SinkName, Arc<DeadCounters>)> {
        self.queues().iter().map(|queue| (queue.dead.sink().clone(), queue.dead.counters.clone())).collect()
    }
}
