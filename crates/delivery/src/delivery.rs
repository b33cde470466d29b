//! The handle on a delivery, which is one thread with one runtime.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aggregation::AggregateBoard;
use dead_letters::DeadLetterService;
use eventlog::{DataDirectory, EventLog};
use ledger::{Ledger, SavedLedger};
use progress::ProgressBoard;
use tokio::sync::{mpsc, watch};

use crate::command::{CHANGES_MAX, Command, DeliveryControl};
use crate::options::Options;
use crate::setup::Setup;
use crate::start_error::StartError;
use crate::status::{CheckpointCounters, LaneBoard};
use crate::stored_times::StoredTimes;
use crate::supervisor::Supervisor;

/// A running delivery. If it is dropped without [`Delivery::stop`], it ends immediately, and the next start recovers
/// what it had not saved.
pub struct Delivery {
    commands: watch::Sender<Command>,
    thread: Option<JoinHandle<()>>,
    ledger: Arc<Ledger>,
    control: DeliveryControl,
    lanes: LaneBoard,
    progress: ProgressBoard,
    stored_times: Arc<StoredTimes>,
    aggregates: AggregateBoard,
    checkpoints: Arc<CheckpointCounters>,
    dead_letters: DeadLetterService,
}

impl Delivery {
    /// Starts to deliver what is in `log`, now and later. `saved` is what `log` was opened with.
    ///
    /// # Errors
    /// [`StartError`]: nothing was delivered.
    pub fn start(
        log: &Arc<EventLog>,
        directory: &DataDirectory,
        setup: Setup,
        saved: SavedLedger,
        options: Options,
    ) -> Result<Self, StartError> {
        let supervisor = Supervisor::new(log, directory, setup, saved, options)?;
        let (ledger, lanes, checkpoints) =
            (supervisor.ledger.clone(), supervisor.board.clone(), supervisor.checkpoint_counters());
        let (dead_letters, aggregates) = (supervisor.dead_letters.clone(), supervisor.aggregates.board().clone());
        let (stored_times, progress) = (supervisor.stored_times.clone(), supervisor.progress.board().clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let (commands, received) = watch::channel(Command::Run);
        let (control, changes) = mpsc::channel(CHANGES_MAX);
        let deliver = move || {
            runtime.block_on(supervisor.run(received, changes));
            // A write to a disk that hangs must not keep the process from ending.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("delivery".into()).spawn(deliver).map_err(StartError::Thread)?;
        let control = DeliveryControl(control);
        let thread = Some(thread);
        Ok(Self {
            commands,
            control,
            thread,
            ledger,
            lanes,
            progress,
            stored_times,
            aggregates,
            checkpoints,
            dead_letters,
        })
    }

    /// The ledger.
    #[must_use]
    pub const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Changes the delivery while it runs.
    #[must_use]
    pub const fn control(&self) -> &DeliveryControl {
        &self.control
    }

    /// The lanes, by sink and shard.
    #[must_use]
    pub const fn lanes(&self) -> &LaneBoard {
        &self.lanes
    }

    /// When lanes passed positions, and their last failures.
    #[must_use]
    pub const fn progress(&self) -> &ProgressBoard {
        &self.progress
    }

    /// How long events took from receipt to storage.
    #[must_use]
    pub const fn stored_times(&self) -> &Arc<StoredTimes> {
        &self.stored_times
    }

    /// The aggregates, by name.
    #[must_use]
    pub const fn aggregates(&self) -> &AggregateBoard {
        &self.aggregates
    }

    /// Counts of saves and of freed segments.
    #[must_use]
    pub const fn checkpoints(&self) -> &Arc<CheckpointCounters> {
        &self.checkpoints
    }

    /// The dead letters of all sinks.
    #[must_use]
    pub const fn dead_letters(&self) -> &DeadLetterService {
        &self.dead_letters
    }

    /// Begins to drain: aggregates close their open windows, and lanes deliver everything, including deferred events
    /// and objects that are not full. After that it closes the sinks and saves the ledger, see [`Delivery::has_ended`].
    /// A drain has no time limit; [`Delivery::stop`] ends it.
    pub fn drain(&self) {
        self.commands.send_replace(Command::Drain);
    }

    /// Whether a drain has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Delivers what is durable, for at most `deadline`, then closes the sinks, saves the ledger and ends. Blocks
    /// until that is done.
    pub fn stop(mut self, deadline: Duration) {
        self.end(Command::Stop(deadline));
    }

    fn end(&mut self, command: Command) {
        self.commands.send_replace(command);
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(Command::Abandon);
        }
    }
}
