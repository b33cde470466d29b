//! The tasks of the lanes: they start together, and stop together when the process ends or the configuration changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aggregation::Halt;
use ledger::Ledger;
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::timeout;

use crate::lane::Lane;
use crate::status::{LaneState, LaneStatus};

/// How long a lane may take to finish its write before it is aborted. The next start of the lane finds the outcome of
/// an aborted write, as after a crash.
const WRITE_MAX: Duration = Duration::from_secs(1);

/// How often a stop checks for lanes that wait for their store although nothing is pending.
const IDLE_EVERY: Duration = Duration::from_millis(100);

/// The running lanes.
pub(crate) struct LaneTasks {
    tasks: JoinSet<()>,
    running: HashMap<Id, (Arc<LaneStatus>, AbortHandle)>,
    halt: watch::Sender<Halt>,
}

impl LaneTasks {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), running: HashMap::new(), halt: watch::Sender::new(Halt::No) }
    }

    /// The signal that ends lanes.
    pub(crate) fn halt(&self) -> watch::Receiver<Halt> {
        self.halt.subscribe()
    }

    pub(crate) fn spawn(&mut self, lane: Lane) {
        let status = lane.status.clone();
        let task = self.tasks.spawn(lane.run());
        self.running.insert(task.id(), (status, task));
    }

    /// Reports lanes that ended because of a bug.
    pub(crate) fn report_bugs(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            self.report_bug(ended);
        }
    }

    fn report_bug(&self, ended: Result<(), JoinError>) {
        let Some(error) = ended.err().filter(|error| !error.is_cancelled()) else { return };
        let Some((status, _)) = self.running.get(&error.id()) else { return };
        let lane = status.lane();
        tracing::warn!(
            %lane, sink = &*lane.sink, shard = lane.shard, reason = %error,
            "BUG: the lane ended; its events stay in the journal. Restart Forebay, and report this"
        );
        let _ =
            status.set(LaneState::Stopped("the lane ended because of a bug: restart Forebay, and report it".into()));
    }

    /// Ends all lanes soon, in any state, before others are started.
    pub(crate) async fn end_now(&mut self) {
        self.halt.send_replace(Halt::Now);
        for (status, task) in self.running.values() {
            // The other lanes wait for a store that may not answer for long.
            if status.state() != LaneState::Delivering {
                task.abort();
            }
        }
        // Lanes that have not ended by then are aborted.
        let _ = timeout(WRITE_MAX, self.join_all()).await;
        self.tasks.shutdown().await;
        self.running.clear();
        self.halt = watch::Sender::new(Halt::No);
    }

    /// Ends each lane when it has caught up or is drained, as `when` says, and the others when `over` ends. Returns
    /// whether all lanes had ended before. A lane that waits for its store ends immediately if nothing is pending for
    /// it.
    pub(crate) async fn end_when(&mut self, when: Halt, ledger: &Ledger, over: impl Future<Output = ()>) -> bool {
        self.halt.send_replace(when);
        let ended = async {
            loop {
                self.end_idle(when, ledger);
                match timeout(IDLE_EVERY, self.tasks.join_next()).await {
                    Ok(Some(ended)) => self.report_bug(ended),
                    Ok(None) => return,
                    Err(_) => {}
                }
            }
        };
        let in_time = tokio::select! {
            biased;
            () = ended => true,
            () = over => false,
        };
        self.tasks.shutdown().await;
        in_time
    }

    /// Ends lanes that wait for a store although nothing is pending for it. A drain also waits for deferred events,
    /// which no backlog counts.
    fn end_idle(&self, when: Halt, ledger: &Ledger) {
        let waits = |(status, _): &&(Arc<LaneStatus>, AbortHandle)| status.state() != LaneState::Delivering;
        let mut waiting = self.running.values().filter(waits).peekable();
        if waiting.peek().is_none() {
            return;
        }
        let pending = ledger.pending_by_sink();
        for (status, task) in waiting {
            let has_no_backlog = when != Halt::WhenDrained && status.backlog() == 0;
            if has_no_backlog || !pending.contains_key(&status.lane().sink) {
                task.abort();
            }
        }
    }

    async fn join_all(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            self.report_bug(ended);
        }
    }
}
