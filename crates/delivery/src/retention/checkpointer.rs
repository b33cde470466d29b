//! The checkpointer: it saves the ledger with all cursors, and frees the segments that no saved cursor needs.
//!
//! A segment is freed only if both generations of the saved ledger have passed it, the failover window (`settle`) of
//! its events is over, and no aggregate would read it again. So either generation still finds all events that it counts
//! as pending.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aggregation::AggregateRetention;
use dead_letters::DeadLetters;
use eventlog::{DataDirectory, EventLog, Reserve, Shard, StateFile};
use ledger::{Document, Ledger, LedgerState, SavedLedger, SinkName, Stamp};

use crate::retention::backlog_limit::{BacklogLimit, BacklogLimits};
use crate::retention::failover_window::FailoverWindow;
use crate::setup::SinkSetup;
use crate::status::{CheckpointCounters, LaneBoard, LaneStatus};

/// Cursors of all shards.
type Cursors = Vec<u64>;

pub(crate) struct Checkpointer {
    log: Arc<EventLog>,
    ledger: Arc<Ledger>,
    file: StateFile,
    reserve: Arc<Reserve>,
    counters: Arc<CheckpointCounters>,
    pub(crate) pins: Arc<AggregateRetention>,
    text: Vec<u8>,
    /// The ledger as of the last check.
    last: Option<(Stamp, Document)>,
    /// The positions up to which the two saved generations need no segments.
    newer: Reached,
    older: Reached,
    dead: Vec<Arc<DeadLetters>>,
    /// The failover window of each sink that may lose its newest events.
    settle: BTreeMap<SinkName, Duration>,
    /// The cursors of such sinks' lanes and their times, by sink and shard.
    settling: BTreeMap<(SinkName, u16), FailoverWindow>,
    board: LaneBoard,
    backlogs: BacklogLimits,
    failing: bool,
    ids_failing: bool,
    /// Shards with a segment that could not be freed, which was reported.
    stuck: BTreeSet<u16>,
    /// The same for sinks' dead letters.
    stuck_dead: BTreeSet<SinkName>,
}

/// The positions up to which a saved generation needs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reached {
    cursors: Cursors,
    /// By sink: in its journal of dead letters.
    dead: BTreeMap<SinkName, u64>,
}

impl Reached {
    fn of(document: &Document) -> Self {
        let dead = document.state.sinks.iter().map(|(name, sink)| (name.clone(), sink.dead_up_to));
        Self { cursors: document.state.passed(&document.counted_up_to), dead: dead.collect() }
    }
}

impl Checkpointer {
    pub(crate) fn new(
        log: Arc<EventLog>,
        ledger: Arc<Ledger>,
        saved: SavedLedger,
        directory: &DataDirectory,
        pins: Arc<AggregateRetention>,
    ) -> Self {
        let (file, saved) = saved.into_parts();
        let nothing = Reached { cursors: vec![0; log.shards().len()], dead: BTreeMap::new() };
        Self {
            newer: saved.as_ref().map_or_else(|| nothing.clone(), Reached::of),
            older: nothing,
            dead: Vec::new(),
            log,
            ledger,
            file,
            reserve: directory.reserve().clone(),
            counters: Arc::default(),
            pins,
            text: Vec::new(),
            last: None,
            settle: BTreeMap::new(),
            settling: BTreeMap::new(),
            board: LaneBoard::default(),
            backlogs: BacklogLimits::default(),
            failing: false,
            ids_failing: false,
            stuck: BTreeSet::new(),
            stuck_dead: BTreeSet::new(),
        }
    }

    pub(crate) fn keep_dead_letters(&mut self, dead: Vec<Arc<DeadLetters>>) {
        self.dead = dead;
    }

    /// Sets the lanes. Without them no failover window ends.
    pub(crate) fn watch(&mut self, board: LaneBoard) {
        self.board = board;
    }

    /// Applies the limits to the sinks of a configuration only. The failover windows of other sinks stay known.
    pub(crate) fn configure(&mut self, sinks: &[SinkSetup]) {
        let limit = |setup: &SinkSetup| BacklogLimit {
            bytes: setup.max_backlog,
            on_this_disk: setup.sink.capabilities().on_this_disk,
        };
        self.backlogs.limit(sinks.iter().map(|setup| (setup.name.clone(), limit(setup))));
        let settle = sinks.iter().map(|setup| (setup.name.clone(), setup.sink.capabilities().settle));
        self.settle = settle.filter(|(_, settle)| *settle > Duration::ZERO).collect();
        self.settling.retain(|(sink, _), _| self.settle.contains_key(sink));
    }

    pub(crate) const fn counters(&self) -> &Arc<CheckpointCounters> {
        &self.counters
    }

    /// Saves the ledger in both generations: both must know where a route begins and ends.
    pub(crate) fn save_both(&mut self) -> bool {
        if !self.tick() {
            return false;
        }
        // From here on it counts: the newer generation has it. If the older one can't be written now, the next tick
        // writes it.
        self.text.clear();
        let first = self.last.take();
        if let (true, Some((stamp, _))) = (self.tick(), first) {
            self.ledger.note_saved(&stamp);
        }
        true
    }

    /// Saves the ledger if it has changed, in both generations if a caller waits for that, and frees segments.
    pub(crate) fn save_as_requested(&mut self) {
        if self.ledger.has_waiters() {
            self.save_both();
        } else {
            self.tick();
        }
    }

    /// Saves the ledger if it has changed, and frees segments. Returns whether the ledger is saved.
    pub(crate) fn tick(&mut self) -> bool {
        let settling = self.settling_lanes();
        // Read first: the next tick sees what changes in between.
        let stamp = self.ledger.stamp();
        let before = self.last.take().filter(|(before, _)| *before == stamp);
        let is_known = before.is_some();
        let document = before.map_or_else(|| self.ledger.document(), |(_, document)| document);
        self.backlogs.reserve(&self.log, &document.state);
        self.check_disk();
        self.check_backlogs(&document.state);
        self.remember(&document, settling);
        let passed = Reached::of(&document);
        let is_saved = is_known && self.newer == passed && self.older == self.newer;
        if !is_saved && !self.save(&document, &passed) {
            return false;
        }
        self.last = Some((stamp, document));
        self.free(&passed.cursors);
        self.free_dead_letters();
        self.reserve.restore();
        true
    }

    /// Saves the ledger if it has changed, and once more after the last change: then both generations agree, and all
    /// that was delivered can be freed.
    fn save(&mut self, document: &Document, passed: &Reached) -> bool {
        let saved = self.write(document, passed);
        if let Err(error) = &saved {
            // It may still be on the disk: write what is known then, even if it was written before.
            self.text.clear();
            self.save_failed(error);
        }
        saved.is_ok()
    }

    fn write(&mut self, document: &Document, passed: &Reached) -> io::Result<()> {
        let text = document.encode()?;
        if text == self.text && self.newer == *passed && self.older == self.newer {
            return Ok(());
        }
        // On a full disk the reserve makes room: without saved cursors nothing could be freed.
        self.reserve.help(|| self.file.write(&text))?;
        self.counters.saves.add(1);
        self.failing = false;
        self.text = text;
        self.older = std::mem::replace(&mut self.newer, passed.clone());
        Ok(())
    }

    /// Rejects new events before the disk is full, and accepts them again when there is space.
    fn check_disk(&mut self) {
        // If the file system does not answer, the next write to it notices.
        let Ok((space, changed)) = self.log.disk_guard().look() else { return };
        let is_short = self.log.disk_guard().is_short();
        for shard in self.log.shards() {
            // What can't be given back now is tried again at the next check.
            let _ = shard.segments().be_thrifty(is_short);
        }
        let (megabytes, files) = (space.bytes / 1_000_000, space.files);
        if changed && is_short {
            tracing::warn!(
                "the disk has {megabytes} MB and {files} files left, less than keep_free: new events are rejected, \
                 and accepted ones are delivered. Free space on the disk"
            );
        } else if changed {
            tracing::warn!("the disk has {megabytes} MB left: events are accepted again");
        }
    }

    fn check_backlogs(&mut self, state: &LedgerState) {
        for (sink, is_full) in self.backlogs.check(&self.log, state, self.log.disk_guard().bytes_all()) {
            let sink = &*sink;
            if is_full {
                tracing::warn!(
                    sink,
                    "sink has reached max_backlog: events with a route to it are rejected until it catches up. Check \
                     its store"
                );
            } else {
                tracing::warn!(sink, "sink has caught up: events with a route to it are accepted again");
            }
        }
    }

    fn save_failed(&mut self, error: &std::io::Error) {
        self.counters.failed_saves.add(1);
        if !self.failing {
            self.failing = true;
            tracing::warn!(
                reason = %error,
                "can't save the ledger: no event is lost, but the journal grows until then. Free space on the disk of \
                 the data directory"
            );
        }
    }

    /// A freed segment takes the ids of its events with it, so they are written elsewhere before. On a full disk that
    /// fails, and freeing is more urgent: the stores' own keys know the ids too.
    fn keep_ids(&mut self, limits: &mut [u64]) {
        match self.log.save_ids(limits) {
            Ok(safe) => {
                limits.iter_mut().zip(safe).for_each(|(limit, safe)| *limit = (*limit).min(safe));
                self.ids_failing = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.ids_failing, true) {
                    tracing::warn!(
                        reason = %error,
                        "can't save the event ids for deduplication, and retries: free space on the disk of the data \
                         directory"
                    );
                }
                if error.kind() != std::io::ErrorKind::StorageFull {
                    limits.fill(0);
                }
            }
        }
    }

    /// The lanes of sinks that may lose their newest events, each with the number of its store's setbacks.
    fn settling_lanes(&self) -> Vec<(Arc<LaneStatus>, u64)> {
        let lanes = self.board.lanes().into_iter().filter(|status| self.settle.contains_key(&status.lane().sink));
        lanes.map(|status| (status.clone(), status.contacts.steady().setbacks)).collect()
    }

    /// Notes the cursors of `lanes`, which were read before the ledger was.
    fn remember(&mut self, document: &Document, lanes: Vec<(Arc<LaneStatus>, u64)>) {
        for (status, setbacks) in lanes {
            let (lane, steady) = (status.lane(), status.contacts.steady());
            let sink = document.state.sinks.get(&lane.sink);
            let Some(known) = sink.and_then(|sink| sink.lanes.get(usize::from(lane.shard))) else { continue };
            // A lane that was set back in between may be at another position than the ledger says.
            if steady.setbacks == setbacks {
                self.settling.entry((lane.sink.clone(), lane.shard)).or_default().note(steady, known.cursor);
            }
        }
    }

    /// The positions up to which the failover windows of all sinks are over, by shard.
    fn settled(&mut self, limits: &mut [u64]) {
        let steady: BTreeMap<_, _> = self
            .board
            .lanes()
            .iter()
            .map(|status| ((status.lane().sink.clone(), status.lane().shard), status.contacts.steady()))
            .collect();
        for (sink, settle) in &self.settle {
            for (shard, limit) in (0_u16..).zip(limits.iter_mut()) {
                let key = (sink.clone(), shard);
                let passed = match (self.settling.get_mut(&key), steady.get(&key)) {
                    (Some(settling), Some(steady)) => settling.passed(*steady, *settle),
                    _ => 0,
                };
                *limit = (*limit).min(passed);
            }
        }
    }

    fn free(&mut self, passed: &[u64]) {
        let mut limits: Cursors = passed.to_vec();
        let lower = |limits: &mut Cursors, other: &[u64]| {
            for (shard, limit) in limits.iter_mut().enumerate() {
                *limit = (*limit).min(other.get(shard).copied().unwrap_or(0));
            }
        };
        lower(&mut limits, &self.newer.cursors);
        lower(&mut limits, &self.older.cursors);
        self.settled(&mut limits);
        self.pins.lower(&mut limits);
        self.keep_ids(&mut limits);
        for (shard, limit) in self.log.shards().iter().zip(limits) {
            match shard.segments().free_up_to(limit) {
                Ok(freed) => {
                    self.counters.freed_segments.add(freed as u64);
                    self.stuck.remove(&shard.number());
                }
                Err(error) => {
                    self.counters.failed_frees.add(1);
                    if self.stuck.insert(shard.number()) {
                        let (shard, reason) = (shard.number(), error);
                        tracing::warn!(
                            shard, %reason,
                            "can't free a segment of the journal, and retries: check the disk and permissions of the \
                             data directory"
                        );
                    }
                }
            }
        }
    }

    /// Up to what both generations have counted, and what no lane can read again.
    fn free_dead_letters(&mut self) {
        let oldest = |shard: &Arc<Shard>| shard.segments().oldest().unwrap_or(0);
        let oldest: Vec<u64> = self.log.shards().iter().map(oldest).collect();
        for dead in &self.dead {
            let counted = |reached: &Reached| reached.dead.get(dead.sink()).copied().unwrap_or(0);
            match dead.free(counted(&self.newer).min(counted(&self.older)), &oldest) {
                Ok(freed) => {
                    self.counters.freed_segments.add(freed as u64);
                    self.stuck_dead.remove(dead.sink());
                }
                Err(error) => {
                    self.counters.failed_frees.add(1);
                    if self.stuck_dead.insert(dead.sink().clone()) {
                        let (sink, reason) = (&**dead.sink(), error);
                        tracing::warn!(
                            sink, %reason,
                            "can't free a segment of the dead letters, and retries: check the disk and permissions of \
                             the data directory"
                        );
                    }
                }
            }
        }
    }
}
