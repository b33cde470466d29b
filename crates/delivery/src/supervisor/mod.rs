//! The supervisor: it runs all lanes, the replayers, the aggregates and the checkpointer on one runtime.

mod reconfigure;
mod start;

use std::sync::Arc;
use std::time::Duration;

use aggregation::{AggregateManager, Halt};
use dead_letters::{DeadLetterService, DeadLetters, DeliveryFiles, ReplaySink, Replayer, replayer};
use eventlog::{DeliveryStatusSource, EventLog};
use ledger::{Ledger, SinkName};
use objects::ObjectSink;
use text::OperatorCommand;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::backoff::Backoff;
use crate::command::{Change, Command};
use crate::lane::Lane;
use crate::lane_tasks::LaneTasks;
use crate::options::Options;
use crate::progress_sampler::ProgressSampler;
use crate::retention::Checkpointer;
use crate::setup::SinkSetup;
use crate::status::{CheckpointCounters, LaneBoard, LaneStatus};
use crate::stored_times::StoredTimes;

/// How long a sink may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(2);

pub(crate) struct Supervisor {
    pub(crate) log: Arc<EventLog>,
    pub(crate) files: DeliveryFiles,
    pub(crate) lanes: LaneTasks,
    pub(crate) aggregates: AggregateManager,
    replayers: JoinSet<()>,
    /// Replayers that have not started yet.
    new_replayers: Vec<Replayer>,
    pub(crate) checkpointer: Checkpointer,
    stop_replayers: watch::Sender<bool>,
    pub(crate) sinks: Vec<SinkSetup>,
    pub(crate) dead: Vec<Arc<DeadLetters>>,
    pub(crate) dead_letters: DeadLetterService,
    options: Arc<Options>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) board: LaneBoard,
    pub(crate) progress: ProgressSampler,
    pub(crate) stored_times: Arc<StoredTimes>,
    backoffs: u64,
    /// Requests that wait until their events are stored ask it, as long as it exists.
    _source: Arc<dyn DeliveryStatusSource>,
}

impl Supervisor {
    /// The dead letters of a sink; a replayer handles them from now on.
    fn find_dead(&mut self, name: &SinkName) -> Arc<DeadLetters> {
        if let Some(dead) = self.dead.iter().find(|dead| dead.sink() == name) {
            return dead.clone();
        }
        let memory = self.options.memory;
        let dead = Arc::new(DeadLetters::new(&self.files, name.clone(), self.ledger.clone(), memory));
        let stop = self.stop_replayers.subscribe();
        let owner = (self.files.origin, self.options.claim);
        let (replayer, queue) = replayer(&dead, owner, self.ledger.clone(), stop);
        self.new_replayers.push(replayer);
        self.dead_letters.add(queue);
        self.dead.push(dead.clone());
        self.checkpointer.keep_dead_letters(self.dead.clone());
        dead
    }

    /// Takes over the sinks of a configuration that the ledger has already.
    pub(crate) fn adopt(&mut self, sinks: Vec<SinkSetup>) {
        self.checkpointer.configure(&sinks);
        let known = self.board.lanes();
        let mut statuses = Vec::new();
        for setup in &sinks {
            self.find_dead(&setup.name).set_limit(setup.max_dead_letters);
            if let Some(mark) = self.ledger.mark(&setup.name) {
                setup.sink.bind(Some(mark));
            }
            for shard in self.log.shards() {
                let name = event::Lane { origin: self.files.origin, shard: shard.number(), sink: setup.name.clone() };
                let cursor = self.ledger.lane(&name).cursor;
                let same = known.iter().find(|status| *status.lane() == name).cloned();
                let progress = self.progress.board().lane(shard.number(), &setup.name);
                let new = || Arc::new(LaneStatus::new(name, shard.clone(), cursor, progress));
                statuses.push(same.unwrap_or_else(new));
            }
        }
        self.board.exchange(statuses);
        for queue in self.dead_letters.queues() {
            let setup = sinks.iter().find(|setup| setup.name == *queue.dead.sink());
            queue.sink.set(setup.map(|setup| ReplaySink {
                sink: setup.sink.clone(),
                takes_single_events: ObjectSink::of(&setup.sink).is_none(),
            }));
        }
        self.sinks = sinks;
        self.report_removed_backlogs();
    }

    fn report_removed_backlogs(&self) {
        for (sink, events) in self.ledger.removed_backlogs() {
            let discard = OperatorCommand::RouteDrop(&sink);
            tracing::warn!(
                sink = &*sink,
                events,
                "sink is no longer configured and has pending events: the journal keeps them and all later ones until the sink is \
                 configured again and has stored them, or {discard} discards them"
            );
        }
    }

    /// Starts all lanes, and the replayers and aggregates that do not run yet.
    pub(crate) fn start_lanes(&mut self) {
        if let Err(error) = self.aggregates.start() {
            tracing::warn!(
                reason = %error,
                "can't start the thread of aggregates, and retries: raise the limits of threads and memory (ulimit \
                 -u)"
            );
        }
        for replayer in self.new_replayers.drain(..) {
            self.replayers.spawn(replayer.run());
        }
        for status in self.board.lanes() {
            let name = status.lane().clone();
            let setup = self.sinks.iter().find(|setup| setup.name == name.sink);
            let dead = self.dead.iter().find(|dead| *dead.sink() == name.sink);
            let shard = self.log.shards().get(usize::from(name.shard));
            let (Some(setup), Some(dead), Some(shard)) = (setup, dead, shard) else { continue };
            self.backoffs += 1;
            let seed = self.options.seed.wrapping_add(self.backoffs);
            self.lanes.spawn(Lane {
                name,
                shard: shard.clone(),
                sink: setup.sink.clone(),
                claim: self.options.claim,
                files: self.files.clone(),
                ledger: self.ledger.clone(),
                dead: dead.clone(),
                options: self.options.clone(),
                status,
                stored_times: self.stored_times.clone(),
                halt: self.lanes.halt(),
                backoff: Backoff::new(seed, self.options.retry_max),
            });
        }
    }

    pub(crate) fn checkpoint_counters(&self) -> Arc<CheckpointCounters> {
        self.checkpointer.counters().clone()
    }

    /// Delivers until it gets another command.
    pub(crate) async fn run(mut self, mut commands: watch::Receiver<Command>, mut changes: mpsc::Receiver<Change>) {
        self.start_lanes();
        let (mut save_requests, mut save_at) = (self.ledger.save_requests(), Instant::now() + self.options.save_every);
        loop {
            let command = *commands.borrow_and_update();
            match command {
                Command::Run => {}
                Command::Stop(deadline) => return self.stop(deadline).await,
                Command::Drain => return self.drain(commands).await,
                Command::Abandon => return,
            }
            tokio::select! {
                biased;
                () = sleep_until(save_at) => {
                    save_at = Instant::now() + self.options.save_every;
                    self.checkpointer.save_as_requested();
                    self.lanes.report_bugs();
                    self.aggregates.report_bugs();
                    self.dead.iter().for_each(|dead| dead.log_new());
                }
                Ok(()) = save_requests.changed() => self.checkpointer.save_as_requested(),
                () = sleep_until(self.progress.due()) => self.progress.sample(),
                Ok(()) = commands.changed() => {}
                Some(change) = changes.recv() => self.change(change).await,
            }
        }
    }

    async fn stop(&mut self, deadline: Duration) {
        let until = Instant::now() + deadline;
        // With a deadline of zero only pending events are reported.
        let in_time = self.end(Halt::WhenDone, sleep(deadline / 2), || sleep_until(until)).await || deadline.is_zero();
        self.close(in_time).await;
    }

    async fn drain(&mut self, commands: watch::Receiver<Command>) {
        let superseded = || {
            let mut commands = commands.clone();
            async move { drop(commands.wait_for(|command| *command != Command::Drain).await) }
        };
        let in_time = self.end(Halt::WhenDrained, superseded(), superseded).await;
        self.close(in_time).await;
    }

    /// Ends aggregates, lanes and replayers when they are done, or when their time is over. Returns whether all were
    /// done.
    async fn end<F: Future<Output = ()>>(
        &mut self,
        when: Halt,
        aggregates_over: impl Future<Output = ()>,
        over: impl Fn() -> F,
    ) -> bool {
        self.stop_replayers.send_replace(true);
        // Before the lanes, which deliver their results.
        let ending = async {
            let in_time = self.aggregates.end_when(when, aggregates_over).await;
            self.lanes.end_when(when, &self.ledger, over()).await && in_time
        };
        let (mut save_requests, checkpointer, save_every, progress) =
            (self.ledger.save_requests(), &mut self.checkpointer, self.options.save_every, &mut self.progress);
        let saving = async {
            loop {
                checkpointer.save_as_requested();
                tokio::select! {
                    biased;
                    () = sleep(save_every) => {}
                    Ok(()) = save_requests.changed() => {}
                    () = sleep_until(progress.due()) => progress.sample(),
                }
            }
        };
        let in_time = tokio::select! {
            biased;
            in_time = ending => in_time,
            never = saving => never,
        };
        let replayers = async { while self.replayers.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            () = replayers => in_time,
            () = over() => false,
        }
    }

    /// Closes the sinks and saves the ledger. Reports pending events and unfinished work.
    async fn close(&mut self, in_time: bool) {
        let pending: u64 = self.ledger.pending_by_sink().values().sum();
        if pending > 0 {
            let pending = text::counted(pending, "event");
            tracing::warn!("{pending} not stored yet, left for the next start");
        } else if !in_time {
            tracing::warn!("an aggregate or a replay did not end in time: the next start resumes it");
        }
        self.replayers.shutdown().await;
        self.close_all_but(&[]).await;
        self.checkpointer.tick();
        self.progress.finish().await;
        for (dead, error) in self.dead.iter().filter_map(|dead| Some((dead, dead.close().err()?))) {
            tracing::warn!(
                sink = &**dead.sink(), reason = %error,
                "can't close the journal of dead letters: check the disk of the data directory"
            );
        }
    }

    /// Closes the drivers that are not in `kept`.
    pub(crate) async fn close_all_but(&self, kept: &[SinkSetup]) {
        for setup in &self.sinks {
            if kept.iter().any(|kept| kept.sink.is_same(&setup.sink)) {
                continue;
            }
            let sink = &*setup.name;
            match timeout(CLOSE_MAX, setup.sink.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(
                    sink, reason = %error,
                    "can't close the connection to the store; no event is lost"
                ),
                Err(_) => tracing::warn!(sink, "the connection to the store did not close in time; no event is lost"),
            }
        }
    }
}
