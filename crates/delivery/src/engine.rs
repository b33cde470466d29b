//! All lanes and the keeper on one runtime.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{DataDirectory, DeliveryStatusSource, EventLog};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::aggregates::{Crew, Surroundings};
use crate::backoff::Backoff;
use crate::change::Change;
use crate::dead_letters::{Clerk, DeadLetters, Desk, Home, SinkSlot, clerk, sinks_with_letters};
use crate::delivery::StartError;
use crate::join::Start;
use crate::keeper::Keeper;
use crate::lane::Lane;
use crate::lanes::{Halt, Lanes};
use crate::objects::Sending;
use crate::race::{First, changed, race};
use crate::status::{KeeperCounters, LaneBoard};
use crate::testimony::Testimony;
use crate::{DeadLetterOffice, LaneStatus, Ledger, Options, Saved, Setup, SinkName, SinkSetup};

/// How long a sink may take to close.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// What the engine is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Run,
    /// Deliver what is durable, for this long at most, then save and close.
    Stop(Duration),
    /// Close all windows and deliver everything, until that is done or another order arrives; then save and close.
    Drain,
    /// Leave everything as it is.
    Abandon,
}

pub(crate) struct Engine {
    pub(crate) log: Arc<EventLog>,
    pub(crate) home: Home,
    sending: Sending,
    pub(crate) lanes: Lanes,
    pub(crate) crew: Crew,
    clerks: JoinSet<()>,
    /// Clerks that wait for the runtime.
    new_clerks: Vec<Clerk>,
    pub(crate) keeper: Keeper,
    stop_clerks: watch::Sender<bool>,
    pub(crate) sinks: Vec<SinkSetup>,
    pub(crate) dead: Vec<Arc<DeadLetters>>,
    pub(crate) dead_letters: DeadLetterOffice,
    options: Arc<Options>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) board: LaneBoard,
    backoffs: u64,
    /// Asked by those who wait for their events to be stored, as long as it is held here.
    _witness: Arc<dyn DeliveryStatusSource>,
}

impl Engine {
    /// Brings the saved state and the configuration together, and saves what that gives.
    pub(crate) fn new(
        log: &Arc<EventLog>,
        directory: &DataDirectory,
        setup: Setup,
        saved: Saved,
        options: Options,
    ) -> Result<Self, StartError> {
        saved.findings().iter().for_each(|finding| options.reporter.report(finding));
        let Saved { file, document, .. } = saved;
        let before = document.as_ref().map(|document| document.book.clone());
        let options = Arc::new(options);
        let mut crew = Crew::new(Surroundings::new(log, directory, &options));
        let routes_before = before.as_ref().map(|before| &before.routes);
        crew.prepare(&setup.aggregates, routes_before).map_err(StartError::Aggregates)?;
        let (mut book, changed) = Start::new(log, (directory.disk(), directory.path()), &setup.routes, before)
            .join(&setup)
            .map_err(StartError::Journal)?;
        for sink in book.sinks.values_mut() {
            sink.hear_nothing(log.shards().iter().map(|shard| shard.recovered()));
        }
        let ledger = Arc::new(Ledger::new(log, book));
        let board = LaneBoard::default();
        let mut keeper = Keeper::new(
            log.clone(),
            ledger.clone(),
            file,
            directory.reserve().clone(),
            document.as_ref(),
            crew.pins().clone(),
            options.reporter.clone(),
        );
        keeper.watch(board.clone());
        keeper.configure(&setup.sinks);
        // Where a route begins must be known to the next start, or it would begin later there.
        if changed && !keeper.save_both() {
            return Err(StartError::Save);
        }
        keeper.tick();
        let dead_letters = DeadLetterOffice::default();
        let witness: Arc<dyn DeliveryStatusSource> = Arc::new(Testimony::new(ledger.clone(), dead_letters.clone()));
        log.delivery_watch().set_source(&witness);
        let mut engine = Self {
            log: log.clone(),
            home: Home::of(directory, log.losses()),
            sending: Sending::default(),
            lanes: Lanes::new(options.reporter.clone()),
            crew,
            clerks: JoinSet::new(),
            new_clerks: Vec::new(),
            keeper,
            stop_clerks: watch::Sender::new(false),
            sinks: Vec::new(),
            dead: Vec::new(),
            dead_letters,
            options,
            ledger,
            board,
            backoffs: 0,
            _witness: witness,
        };
        let rows = engine.ledger.snapshot();
        let mut with_letters = sinks_with_letters(directory).map_err(StartError::DeadLetters)?;
        with_letters.extend(engine.ledger.sinks_with_letters());
        for name in with_letters {
            let dead = engine.find_dead(&name);
            dead.mark_used();
            let rows = rows.iter().flat_map(|row| &row.sinks).filter(|row| row.sink == name);
            if rows.clone().any(|row| row.removed && row.pending > 0) {
                // No lane does it. If it can't be read now, whoever asks for letters is told.
                let _ = dead.look();
            }
        }
        engine.adopt(setup.sinks);
        engine.crew.adopt(setup.aggregates);
        Ok(engine)
    }

    /// The dead letters of a sink, which a clerk works on from now on.
    fn find_dead(&mut self, name: &SinkName) -> Arc<DeadLetters> {
        if let Some(dead) = self.dead.iter().find(|dead| dead.sink() == name) {
            return dead.clone();
        }
        let dead = DeadLetters::new(&self.home, name.clone(), self.ledger.clone(), &self.options);
        #[cfg(test)]
        dead.forgetful.store(
            self.options.mutation == Some(crate::tests::Mutation::UnsyncedDead),
            std::sync::atomic::Ordering::Relaxed,
        );
        let (dead, sink) = (Arc::new(dead), SinkSlot::default());
        let stop = self.stop_clerks.subscribe();
        let owner = (self.home.origin, self.options.claim);
        let (clerk, orders) = clerk(&dead, sink.clone(), owner, self.ledger.clone(), stop);
        self.new_clerks.push(clerk);
        self.dead_letters.add(Desk { dead: dead.clone(), orders, sink });
        self.dead.push(dead.clone());
        self.keeper.keep_dead_letters(self.dead.clone());
        dead
    }

    /// Takes over the sinks of a configuration that the book has already.
    pub(crate) fn adopt(&mut self, sinks: Vec<SinkSetup>) {
        self.keeper.configure(&sinks);
        let known = self.board.lanes();
        let mut statuses = Vec::new();
        for setup in &sinks {
            self.find_dead(&setup.name).set_limit(setup.max_dead_letters);
            if let Some(mark) = self.ledger.mark(&setup.name) {
                setup.sink.bind(Some(mark));
            }
            for shard in self.log.shards() {
                let name = event::Lane { origin: self.home.origin, shard: shard.number(), sink: setup.name.clone() };
                let cursor = self.ledger.lane(&name).cursor;
                let same = known.iter().find(|status| *status.lane() == name).cloned();
                statuses.push(same.unwrap_or_else(|| Arc::new(LaneStatus::new(name, shard.clone(), cursor))));
            }
        }
        self.board.exchange(statuses);
        for desk in self.dead_letters.desks() {
            let setup = sinks.iter().find(|setup| setup.name == *desk.dead.sink());
            desk.sink.set(setup.map(|setup| setup.sink.clone()));
        }
        self.sinks = sinks;
        self.report_left_behind();
    }

    fn report_left_behind(&self) {
        for (sink, events) in self.ledger.left_behind() {
            self.options.reporter.report(&format!(
                "sink {sink} is no longer configured and holds {events} event(s): no segment behind them is freed until \
                 it is configured again and has taken them, or they are given up (forebay route drop {sink})"
            ));
        }
    }

    /// Starts all lanes, and clerks and aggregates that don't work yet.
    pub(crate) fn start_lanes(&mut self) {
        if let Err(error) = self.crew.start() {
            self.options.reporter.report(&format!("can't start the thread of aggregates, and tries on: {error}"));
        }
        for clerk in self.new_clerks.drain(..) {
            self.clerks.spawn(clerk.run());
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
                home: self.home.clone(),
                sending: self.sending.clone(),
                ledger: self.ledger.clone(),
                dead: dead.clone(),
                options: self.options.clone(),
                status,
                halt: self.lanes.halt(),
                backoff: Backoff::new(seed, self.options.retry_max),
            });
        }
    }

    pub(crate) fn keeper_counters(&self) -> Arc<KeeperCounters> {
        self.keeper.counters().clone()
    }

    /// Delivers until it is told otherwise.
    pub(crate) async fn run(mut self, mut orders: watch::Receiver<Order>, mut changes: mpsc::Receiver<Change>) {
        self.start_lanes();
        let (mut wishes, mut save_at) = (self.ledger.wishes(), Instant::now() + self.options.save_every);
        loop {
            let order = *orders.borrow_and_update();
            match order {
                Order::Run => {}
                Order::Stop(deadline) => return self.stop(deadline).await,
                Order::Drain => return self.drain(orders).await,
                Order::Abandon => return,
            }
            let told = race(changed(&mut orders), received(&mut changes));
            match race(race(sleep_until(save_at), changed(&mut wishes)), told).await {
                First::One(First::Other(())) => self.keeper.save_as_wished(),
                First::One(First::One(())) => {
                    save_at = Instant::now() + self.options.save_every;
                    self.keeper.save_as_wished();
                    self.lanes.report_bugs();
                    self.crew.report_bugs();
                    self.dead.iter().for_each(|dead| dead.tell());
                }
                First::Other(First::One(())) => {}
                First::Other(First::Other(change)) => self.change(change).await,
            }
        }
    }

    async fn stop(&mut self, deadline: Duration) {
        let until = Instant::now() + deadline;
        // A stop without a time limit of its own reports only pending events.
        let in_time = self.end(Halt::WhenDone, sleep(deadline / 2), || sleep_until(until)).await || deadline.is_zero();
        self.close(in_time).await;
    }

    async fn drain(&mut self, orders: watch::Receiver<Order>) {
        let superseded = || {
            let mut orders = orders.clone();
            async move { drop(orders.wait_for(|order| *order != Order::Drain).await) }
        };
        let in_time = self.end(Halt::WhenDrained, superseded(), superseded).await;
        self.close(in_time).await;
    }

    /// Ends aggregates, lanes and clerks when they are done, and the others when their time is over. Returns whether all were done.
    async fn end<F: Future<Output = ()>>(
        &mut self,
        when: Halt,
        aggregates_over: impl Future<Output = ()>,
        over: impl Fn() -> F,
    ) -> bool {
        self.stop_clerks.send_replace(true);
        // Before the lanes, which deliver what they make.
        let ending = async {
            let in_time = self.crew.end_when(when, aggregates_over).await;
            self.lanes.end_when(when, &self.ledger, over()).await && in_time
        };
        let (mut wishes, keeper, save_every) = (self.ledger.wishes(), &mut self.keeper, self.options.save_every);
        let saving = async {
            loop {
                keeper.save_as_wished();
                race(sleep(save_every), changed(&mut wishes)).await;
            }
        };
        let in_time = match race(ending, saving).await {
            First::One(in_time) => in_time,
            First::Other(never) => never,
        };
        let clerks = async { while self.clerks.join_next().await.is_some() {} };
        race(clerks, over()).await == First::One(()) && in_time
    }

    /// Closes the sinks and saves the ledger. Reports pending events and unfinished work.
    async fn close(&mut self, in_time: bool) {
        let pending: u64 = self.ledger.pending_by_sink().values().sum();
        if pending > 0 {
            self.options
                .reporter
                .report(&format!("{pending} event(s) are not stored yet: they wait for the next start"));
        } else if !in_time {
            self.options.reporter.report("some work did not end in time; the next start resumes it");
        }
        self.clerks.shutdown().await;
        self.close_all_but(&[]).await;
        self.keeper.tick();
        for error in self.dead.iter().filter_map(|dead| dead.close().err()) {
            self.options.reporter.report(&format!("can't close the dead letters: {error}"));
        }
    }

    /// Closes the drivers that `kept` doesn't have.
    pub(crate) async fn close_all_but(&self, kept: &[SinkSetup]) {
        for setup in &self.sinks {
            if kept.iter().any(|kept| kept.sink.is_same(&setup.sink)) {
                continue;
            }
            let report = |text: String| self.options.reporter.report(&format!("sink {}: {text}", setup.name));
            match timeout(CLOSE_MAX, setup.sink.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => report(error.to_string()),
                Err(_) => report("it didn't close in time".into()),
            }
        }
    }
}

/// The next change; for ever where nobody can ask for one any more.
async fn received(changes: &mut mpsc::Receiver<Change>) -> Change {
    match changes.recv().await {
        Some(change) => change,
        None => std::future::pending().await,
    }
}
