//! The start: the saved ledger and the configuration are reconciled and saved before anything runs.

use std::sync::Arc;

use aggregation::AggregateManager;
use dead_letters::{DeadLetterService, DeliveryFiles, deferred_events, sinks_with_dead_letters};
use event::TypeName;
use eventlog::{DataDirectory, DeliveryStatusSource, EventLog};
use ledger::{Ledger, LedgerState, Reconciler, SavedLedger, SinkName};
use progress::ProgressBoard;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Supervisor;
use crate::lane_tasks::LaneTasks;
use crate::options::Options;
use crate::progress_sampler::ProgressSampler;
use crate::retention::Checkpointer;
use crate::setup::{Setup, SinkSetup};
use crate::start_error::StartError;
use crate::status::LaneBoard;
use crate::status_source::StatusSource;

impl Supervisor {
    /// Reconciles the saved ledger with the configuration, and saves the result.
    pub(crate) fn new(
        log: &Arc<EventLog>,
        directory: &DataDirectory,
        setup: Setup,
        saved: SavedLedger,
        options: Options,
    ) -> Result<Self, StartError> {
        saved.findings().iter().for_each(|finding| tracing::warn!("{finding}"));
        let before = saved.state().cloned();
        let (clock, progress_thread) = (options.clock.clone(), options.progress_thread);
        let options = Arc::new(options);
        let mut aggregates = AggregateManager::new(log, directory, options.aggregation());
        let was_routed = before.as_ref().map(|before| |name: &TypeName| before.routes.has_entry(name));
        aggregates.prepare(&setup.aggregates, was_routed).map_err(StartError::Aggregates)?;
        let (state, changed) = reconcile(log, directory, &setup, before)?;
        let ledger = Arc::new(Ledger::new(log, state));
        let board = LaneBoard::default();
        let pins = aggregates.pins().clone();
        let mut checkpointer = Checkpointer::new(log.clone(), ledger.clone(), saved, directory, pins);
        checkpointer.watch(board.clone());
        checkpointer.configure(&setup.sinks);
        // The next start must know where a route begins, or it would begin later there.
        if changed && !checkpointer.save_both() {
            return Err(StartError::Save);
        }
        checkpointer.tick();
        let dead_letters = DeadLetterService::default();
        let source: Arc<dyn DeliveryStatusSource> = Arc::new(StatusSource::new(ledger.clone(), dead_letters.clone()));
        log.delivery_watch().set_source(&source);
        let mut supervisor = Self {
            log: log.clone(),
            files: DeliveryFiles::of(directory, log.losses()),
            lanes: LaneTasks::new(),
            aggregates,
            replayers: JoinSet::new(),
            new_replayers: Vec::new(),
            checkpointer,
            stop_replayers: watch::Sender::new(false),
            sinks: Vec::new(),
            dead: Vec::new(),
            dead_letters,
            options,
            ledger,
            progress: ProgressSampler::new(
                ProgressBoard::new(directory),
                log.clone(),
                board.clone(),
                clock,
                progress_thread,
            ),
            board,
            stored_times: Arc::default(),
            backoffs: 0,
            _source: source,
        };
        supervisor.find_all_dead(directory)?;
        supervisor.forget_removed(&setup.sinks);
        supervisor.adopt(setup.sinks);
        supervisor.aggregates.adopt(setup.aggregates);
        Ok(supervisor)
    }

    /// Removes the progress of sinks that neither the ledger nor the configuration has.
    fn forget_removed(&self, sinks: &[SinkSetup]) {
        let known = self.ledger.copy().sinks;
        let is_known = |name: &str| known.contains_key(name) || sinks.iter().any(|setup| *setup.name == *name);
        self.progress.board().keep(is_known);
    }

    /// Opens the dead letters of all sinks, also of those that are no longer configured.
    fn find_all_dead(&mut self, directory: &DataDirectory) -> Result<(), StartError> {
        let rows = self.ledger.snapshot();
        let mut with_dead_letters = sinks_with_dead_letters(directory).map_err(StartError::DeadLetters)?;
        with_dead_letters.extend(self.ledger.sinks_with_dead_letters());
        for name in with_dead_letters {
            let dead = self.find_dead(&name);
            dead.mark_used();
            let mut rows = rows.iter().flat_map(|row| &row.sinks).filter(|row| row.sink == name);
            if rows.any(|row| row.removed && row.pending > 0) {
                // No lane does it. If the journal can't be read now, the next request for the dead letters fails.
                let _ = dead.open_existing();
            }
        }
        Ok(())
    }
}

/// The ledger to continue with, and whether routes have begun or ended.
fn reconcile(
    log: &EventLog,
    directory: &DataDirectory,
    setup: &Setup,
    before: Option<LedgerState>,
) -> Result<(LedgerState, bool), StartError> {
    let deferred = |sink: &SinkName| deferred_events(directory.disk(), directory.path(), sink);
    let reconciler = Reconciler::new(log, &deferred, &setup.routes, before);
    let (mut state, changed) = reconciler.reconcile(&setup.configuration()).map_err(StartError::Journal)?;
    for sink in state.sinks.values_mut() {
        sink.reset_confirmation(log.shards().iter().map(|shard| shard.recovered()));
    }
    Ok((state, changed))
}
