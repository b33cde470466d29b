//! The service for the dead letters of all sinks: it lists, shows, edits, replays and drops them.

use std::sync::{Arc, Mutex, PoisonError};

use event::TypeName;
use ledger::SinkName;
use tokio::sync::oneshot;

use crate::blocked::Blocked;
use crate::counters::DeadCounters;
use crate::filter::{DeadFilter, DeadList};
use crate::groups::{DeadGroups, GroupCount};
use crate::listing::{self, PageRequest};
use crate::notify::LastDead;
use crate::replay::{DeadAction, DeadCommand, DeadOutcome, DeadProgress, SinkQueue};
use crate::selection::{self, SelectedSink, Selection};

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

    /// By name: a list continues with the next name after a cursor.
    fn chosen(&self, filter: &DeadFilter) -> Vec<Arc<SinkQueue>> {
        let mut chosen = self.queues();
        chosen.retain(|queue| filter.names(queue.dead.sink()));
        chosen.sort_by(|a, b| a.dead.sink().cmp(b.dead.sink()));
        chosen
    }

    pub(crate) fn find(&self, sink: &str) -> Option<Arc<SinkQueue>> {
        self.queues().into_iter().find(|queue| **queue.dead.sink() == *sink)
    }

    /// Whether there is such a sink, or was while this process ran.
    #[must_use]
    pub fn has_sink(&self, sink: &str) -> bool {
        self.find(sink).is_some()
    }

    /// A page of the dead letters that are held now, by the names of their sinks. Reads the disk: call it where that may
    /// block.
    ///
    /// # Errors
    /// [`DeadError`] where a journal can't be read.
    pub fn list(&self, filter: &DeadFilter, page: &PageRequest) -> Result<DeadList, DeadError> {
        let mut found = DeadList::default();
        for queue in self.chosen(filter) {
            listing::list(&queue.dead, filter, page, &mut found).map_err(|error| failed(&queue, &error))?;
        }
        Ok(found)
    }

    /// The groups of the dead letters that are held now. Reads the disk, as [`Self::list`].
    ///
    /// # Errors
    /// [`DeadError`] where a journal can't be read.
    pub fn groups(&self, filter: &DeadFilter) -> Result<DeadGroups, DeadError> {
        let mut count = GroupCount::default();
        for queue in self.chosen(filter) {
            count.add_all(&queue.dead, filter).map_err(|error| failed(&queue, &error))?;
        }
        Ok(count.largest())
    }

    /// The dead letters that match now, at most `limit` of each sink. Reads the disk, as [`Self::list`].
    ///
    /// # Errors
    /// [`DeadError`] where a journal can't be read.
    pub fn select(&self, filter: &DeadFilter, limit: u64) -> Result<Selection, DeadError> {
        let mut sinks = Vec::new();
        for queue in self.chosen(filter) {
            let counted = selection::count(&queue.dead, filter, limit);
            let (letters, until) = counted.map_err(|error| failed(&queue, &error))?;
            if letters > 0 {
                sinks.push(SelectedSink { queue, until, letters });
            }
        }
        Ok(Selection { filter: filter.clone(), limit, sinks })
    }

    /// Replays, drops or edits the held dead letters that match the filter, at most `limit` of each sink, and returns
    /// the outcome. The work continues if the caller is gone.
    pub async fn act(&self, action: &DeadAction, filter: &DeadFilter, limit: u64) -> Vec<DeadOutcome> {
        let progress = Arc::default();
        let mut outcomes = Vec::new();
        for queue in self.chosen(filter) {
            outcomes.push(order(&queue, action, (filter, limit, u64::MAX), &progress).await);
        }
        outcomes
    }

    /// The same for a selection: later dead letters are not handled. `progress` shows the counts so far, and can stop
    /// the work after a batch.
    pub async fn act_on(
        &self,
        action: &DeadAction,
        selection: &Selection,
        progress: &Arc<DeadProgress>,
    ) -> Vec<DeadOutcome> {
        for SelectedSink { queue, until, .. } in &selection.sinks {
            let wanted = (&selection.filter, selection.limit, *until);
            let outcome = order(queue, action, wanted, progress).await;
            progress.publish(&outcome);
            if progress.is_stopped() {
                break;
            }
        }
        progress.outcomes()
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

/// Has a sink's replayer handle dead letters: those that match, how many, and up to which position.
async fn order(
    queue: &SinkQueue,
    action: &DeadAction,
    (filter, limit, until): (&DeadFilter, u64, u64),
    progress: &Arc<DeadProgress>,
) -> DeadOutcome {
    let (reply, answer) = oneshot::channel();
    let (action, filter, shared) = (action.clone(), filter.clone(), progress.clone());
    let command = DeadCommand { action, filter, limit, until, progress: shared, reply };
    let sent = queue.commands.send(command).await.is_ok();
    let outcome = if sent { answer.await.ok() } else { None };
    outcome.unwrap_or_else(|| DeadOutcome {
        failure: Some("interrupted, because Forebay is stopping: repeat the command after the restart".into()),
        ..progress.of(queue.dead.sink())
    })
}

fn failed(queue: &SinkQueue, error: &Blocked) -> DeadError {
    DeadError { sink: queue.dead.sink().clone(), reason: error.to_string() }
}
