//! All lanes and the keeper on one runtime.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{DataDirectory, EventLog};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::dead_letters::{Clerk, DeadLetters, Desk, clerk, sinks_with_letters};
use crate::delivery::StartError;
use crate::join::Start;
use crate::keeper::Keeper;
use crate::lane::Lane;
use crate::race::{First, changed, race};
use crate::status::KeeperCounters;
use crate::{DeadLetterOffice, LaneState, LaneStatus, Ledger, Options, Routes, Saved, SinkName, SinkSetup};

/// How long a sink may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// What the engine is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Run,
    /// Deliver what is durable, for this long at most, then save and close.
    Stop(Duration),
    /// Leave everything as it is.
    Abandon,
}

pub(crate) struct Engine {
    lanes: Vec<Lane>,
    clerks: Vec<Clerk>,
    keeper: Keeper,
    stop: watch::Sender<bool>,
    sinks: Vec<SinkSetup>,
    pub(crate) dead: Vec<Arc<DeadLetters>>,
    pub(crate) dead_letters: DeadLetterOffice,
    options: Arc<Options>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) statuses: Vec<Arc<LaneStatus>>,
}

/// The tasks of the lanes, and whose they are.
#[derive(Default)]
struct Lanes {
    tasks: JoinSet<()>,
    statuses: HashMap<Id, Arc<LaneStatus>>,
}

impl Engine {
    /// Brings the saved state and the configuration together, and saves what that gives.
    pub(crate) fn new(
        log: &Arc<EventLog>,
        directory: &DataDirectory,
        routes: Routes,
        sinks: Vec<SinkSetup>,
        saved: Saved,
        options: Options,
    ) -> Result<Self, StartError> {
        saved.findings().iter().for_each(|finding| options.reporter.report(finding));
        let Saved { file, document, .. } = saved;
        let before = document.as_ref().map(|document| document.book.clone());
        let (book, changed) = Start::new(log, &routes, before).join(routes, &sinks).map_err(StartError::Journal)?;
        let ledger = Arc::new(Ledger::new(log, book));
        let mut keeper = Keeper::new(
            log.clone(),
            ledger.clone(),
            file,
            directory.reserve().clone(),
            document.as_ref(),
            options.reporter.clone(),
        );
        for setup in &sinks {
            keeper.settle(setup.name.clone(), setup.sink.traits().settle);
            keeper.limit_backlog(setup.name.clone(), setup.max_backlog);
        }
        // Where a route begins must be known to the next start, or it would begin later there.
        if !keeper.tick() && changed {
            return Err(StartError::Save);
        }
        for (sink, events) in ledger.left_behind() {
            options.reporter.report(&format!(
                "sink {sink} is no longer configured and holds {events} event(s): no segment behind them is freed until \
                 it is configured again and has taken them"
            ));
        }
        let mut engine = Self {
            lanes: Vec::new(),
            clerks: Vec::new(),
            keeper,
            stop: watch::Sender::new(false),
            sinks: Vec::new(),
            dead: Vec::new(),
            dead_letters: DeadLetterOffice::new(Vec::new()),
            options: Arc::new(options),
            ledger,
            statuses: Vec::new(),
        };
        for setup in sinks {
            engine.add_sink(log, directory, setup);
        }
        engine.open_office(directory).map_err(StartError::DeadLetters)?;
        Ok(engine)
    }

    /// Gives the dead letters of each sink a clerk, also of those that aren't configured any more.
    fn open_office(&mut self, directory: &DataDirectory) -> std::io::Result<()> {
        for name in sinks_with_letters(directory)? {
            if self.dead.iter().all(|dead| *dead.sink() != name) {
                self.dead.push(self.new_dead_letters(directory, name));
            }
        }
        let mut desks = Vec::new();
        for dead in &self.dead {
            let setup = self.sinks.iter().find(|setup| setup.name == *dead.sink());
            let sink = setup.map(|setup| setup.sink.clone());
            let stop = self.stop.subscribe();
            let (clerk, orders) = clerk(dead, sink, directory.origin(), self.ledger.clone(), stop);
            self.clerks.push(clerk);
            desks.push(Desk { dead: dead.clone(), orders });
        }
        self.keeper.keep_dead_letters(self.dead.clone());
        self.dead_letters = DeadLetterOffice::new(desks);
        Ok(())
    }

    fn new_dead_letters(&self, directory: &DataDirectory, sink: SinkName) -> Arc<DeadLetters> {
        Arc::new(DeadLetters::new(directory, sink, self.ledger.clone(), self.options.reporter.clone()))
    }

    fn add_sink(&mut self, log: &Arc<EventLog>, directory: &DataDirectory, setup: SinkSetup) {
        let dead = self.new_dead_letters(directory, setup.name.clone());
        #[cfg(test)]
        dead.forgetful.store(
            self.options.mutation == Some(crate::tests::Mutation::UnsyncedDead),
            std::sync::atomic::Ordering::Relaxed,
        );
        for shard in log.shards() {
            let name = event::Lane { origin: directory.origin(), shard: shard.number(), sink: setup.name.clone() };
            let cursor = self.ledger.lane(&name).cursor;
            let status = Arc::new(LaneStatus::new(name.clone(), shard.clone(), cursor));
            self.statuses.push(status.clone());
            let seed = self.options.seed.wrapping_add(self.statuses.len() as u64);
            self.lanes.push(Lane {
                name,
                shard: shard.clone(),
                sink: setup.sink.clone(),
                ledger: self.ledger.clone(),
                dead: dead.clone(),
                options: self.options.clone(),
                status,
                stop: self.stop.subscribe(),
                backoff: Backoff::new(seed, self.options.retry_max),
            });
        }
        self.dead.push(dead);
        self.sinks.push(setup);
    }

    pub(crate) fn keeper_counters(&self) -> Arc<KeeperCounters> {
        self.keeper.counters().clone()
    }

    /// Delivers until it is told otherwise.
    pub(crate) async fn run(mut self, mut orders: watch::Receiver<Order>) {
        let mut lanes = Lanes::default();
        for lane in self.lanes.drain(..) {
            let status = lane.status.clone();
            let task = lanes.tasks.spawn(lane.run());
            lanes.statuses.insert(task.id(), status);
        }
        for clerk in self.clerks.drain(..) {
            lanes.tasks.spawn(clerk.run());
        }
        loop {
            let order = *orders.borrow_and_update();
            match order {
                Order::Run => {}
                Order::Stop(deadline) => return self.stop(lanes, deadline).await,
                Order::Abandon => return,
            }
            if let First::One(()) = race(sleep(self.options.save_every), changed(&mut orders)).await {
                self.keeper.tick();
                self.report_bugs(&mut lanes);
            }
        }
    }

    fn report_bugs(&self, lanes: &mut Lanes) {
        while let Some(ended) = lanes.tasks.try_join_next() {
            self.report_bug(lanes, ended);
        }
    }

    fn report_bug(&self, lanes: &Lanes, ended: Result<(), JoinError>) {
        let Err(error) = ended else { return };
        let Some(status) = lanes.statuses.get(&error.id()) else { return };
        let lane = status.lane();
        self.options.reporter.report(&format!("BUG: lane {lane} ended: {error}; its events stay in the journal"));
        let _ = status.set(LaneState::Stopped("it ended because of a BUG; start Forebay again and report it".into()));
    }

    async fn stop(&mut self, mut lanes: Lanes, deadline: Duration) {
        let until = Instant::now() + deadline;
        self.stop.send_replace(true);
        let all = async {
            while let Some(ended) = lanes.tasks.join_next().await {
                self.report_bug(&lanes, ended);
            }
        };
        let in_time = tokio::time::timeout_at(until, all).await.is_ok();
        if !in_time {
            self.options.reporter.report("not everything was delivered in time; the rest is, after the next start");
        }
        lanes.tasks.shutdown().await;
        for setup in &self.sinks {
            let report = |text: String| self.options.reporter.report(&format!("sink {}: {text}", setup.name));
            match timeout(CLOSE_MAX, setup.sink.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => report(error.to_string()),
                Err(_) => report("it didn't close in time".into()),
            }
        }
        self.keeper.tick();
        for error in self.dead.iter().filter_map(|dead| dead.close().err()) {
            self.options.reporter.report(&format!("can't close the dead letters: {error}"));
        }
    }
}
