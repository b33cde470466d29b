//! The ledger: for each type and each of its sinks, accepted = stored + dead + skipped + lost + pending, at every moment.
//!
//! Events are counted as accepted before a lane can see them. A reader locks the accepted counts first and then the
//! outcomes, so there are never more outcomes than events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::{Lane, TypeName};
use eventlog::{Accepted, AcceptedCounts, DeliveryWatch, EventLog, FilterStep, PendingLane, Types, WatchRequest};
use metrics::Counter;
use sink::Mark;
use tokio::sync::watch;

use crate::codec::Document;
use crate::condition::Passage;
use crate::outcomes::Tally;
use crate::recount::Recount;
use crate::routes::SinkName;
use crate::rows::{LedgerRow, SinkRow, sink_row};
use crate::state::{LaneProgress, LedgerState, SinkProgress};

fn filtered(counts: &AcceptedCounts) -> Vec<(FilterStep, u64)> {
    counts.filtered.iter().map(|(step, events)| (step.clone(), *events)).collect()
}

/// The state, and its counters as a whole.
pub(crate) struct Inner {
    pub(crate) state: LedgerState,
    /// How many types of the process have their routes registered.
    registered: usize,
    /// The number of changes.
    changes: u64,
}

/// Changes whenever anything changes that is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    counted_up_to: Vec<u64>,
    /// Events that steps filtered, of all types.
    filtered: u64,
    types: usize,
    changes: u64,
}

/// The counts of a process.
pub struct Ledger {
    accepted: Arc<Accepted>,
    types: Arc<Types>,
    inner: Mutex<Inner>,
    waiting: Arc<DeliveryWatch>,
    errors: Counter,
    /// The number of the last change that is saved in both generations, and of the last one that a caller waits for.
    saved: watch::Sender<u64>,
    wanted: watch::Sender<u64>,
}

impl Inner {
    /// Registers the routes of the types that are new since the last call, and returns the names of all types.
    fn register_types(&mut self, types: &Types) -> Vec<TypeName> {
        let names = types.names();
        names.iter().skip(self.registered).for_each(|name| self.state.register_type(name));
        self.registered = names.len();
        names
    }
}

impl Ledger {
    /// The counts of a process that delivers from `log`, starting with `state`.
    pub fn new(log: &EventLog, state: LedgerState) -> Self {
        let (accepted, types) = (log.accepted().clone(), log.types().clone());
        let inner = Mutex::new(Inner { state, registered: 0, changes: 0 });
        let (saved, wanted) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { accepted, types, inner, waiting: log.delivery_watch().clone(), errors: Counter::new(), saved, wanted }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present counts: a row for each type, by name.
    #[must_use]
    pub fn snapshot(&self) -> Vec<LedgerRow> {
        self.snapshot_with_filtered().0
    }

    /// The same, with the number of events that each step has filtered.
    #[must_use]
    pub fn snapshot_with_filtered(&self) -> (Vec<LedgerRow>, Vec<(FilterStep, u64)>) {
        let (accepted, mut inner) = self.lock_both();
        let names = inner.register_types(&self.types);
        let count = |index: usize| accepted.by_type.get(index).copied().unwrap_or(0);
        let rows = names.into_iter().enumerate().map(|(index, name)| self.row(&inner.state, name, count(index)));
        let mut rows: Vec<LedgerRow> = rows.collect();
        rows.sort_by(|one, other| one.type_name.cmp(&other.type_name));
        (rows, filtered(&accepted))
    }

    /// The number of pending events of each configured sink that has any. Events of sinks that are no longer configured
    /// do not count.
    #[must_use]
    pub fn pending_by_sink(&self) -> BTreeMap<SinkName, u64> {
        let configured: BTreeSet<SinkName> = self.lock().state.configured().cloned().collect();
        let mut pending = BTreeMap::new();
        for row in self.snapshot().into_iter().flat_map(|row| row.sinks) {
            if row.pending > 0 && configured.contains(&row.sink) {
                *pending.entry(row.sink).or_default() += row.pending;
            }
        }
        pending
    }

    /// How often there were more outcomes than events, or fewer than a setback needs: a bug.
    #[must_use]
    pub const fn errors(&self) -> &Counter {
        &self.errors
    }

    /// The sinks that are no longer configured and keep segments from being freed, each with its number of pending
    /// events.
    pub fn removed_backlogs(&self) -> Vec<(SinkName, u64)> {
        let rows = self.snapshot();
        let pending = |name: &SinkName| {
            rows.iter().flat_map(|row| &row.sinks).filter(|row| row.sink == *name).map(|row| row.pending).sum()
        };
        let inner = self.lock();
        let left = inner.state.sinks.iter().filter(|(_, sink)| !sink.configured && sink.waits());
        left.map(|(name, _)| (name.clone(), pending(name))).collect()
    }

    /// A copy of the state.
    pub fn copy(&self) -> LedgerState {
        self.lock().state.clone()
    }

    /// Replaces the state, while no lane runs.
    pub fn replace(&self, state: LedgerState) {
        let mut inner = self.lock();
        *inner = Inner { state, registered: 0, changes: inner.changes + 1 };
        drop(inner);
        self.waiting.notify_all();
    }

    /// Requests that wait for events check again which lanes they wait for.
    pub(crate) fn end_waiting(&self) {
        self.waiting.notify_all();
    }

    /// Locks the accepted counts first, then the state: the order of all locks.
    fn lock_both(&self) -> (MutexGuard<'_, AcceptedCounts>, MutexGuard<'_, Inner>) {
        let accepted = self.accepted.hold();
        let inner = self.lock();
        (accepted, inner)
    }

    fn row(&self, state: &LedgerState, type_name: TypeName, accepted: u64) -> LedgerRow {
        let sinks = state.sinks.iter().filter_map(|(sink, state)| self.sink_row(sink, state, &type_name, accepted));
        LedgerRow { sinks: sinks.collect(), derived: state.derived.contains(&type_name), type_name, accepted }
    }

    fn sink_row(&self, sink: &SinkName, state: &SinkProgress, name: &TypeName, accepted: u64) -> Option<SinkRow> {
        let (row, is_right) = sink_row(sink, state, name, accepted)?;
        if !is_right {
            self.errors.add(1);
        }
        Some(row)
    }

    fn or_error<T>(&self, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.errors.add(1);
        }
        value
    }

    /// The content to save.
    pub fn document(&self) -> Document {
        let (accepted, mut inner) = self.lock_both();
        let names = inner.register_types(&self.types);
        let counts = accepted.by_type.iter().copied();
        Document {
            counted_up_to: accepted.counted_up_to.clone(),
            accepted: names.into_iter().zip(counts).collect(),
            filtered: filtered(&accepted),
            state: inner.state.clone(),
        }
    }

    /// If two stamps are equal, nothing has changed between them. With thousands of types, comparing the content would
    /// be expensive.
    pub fn stamp(&self) -> Stamp {
        let (accepted, inner) = self.lock_both();
        let counted_up_to = accepted.counted_up_to.clone();
        let filtered = accepted.filtered.values().sum();
        Stamp { counted_up_to, filtered, types: self.types.len(), changes: inner.changes }
    }

    /// Binds the sink to the store with this mark (store id). Returns the number of this change of the ledger.
    pub fn set_mark(&self, sink: &SinkName, mark: Option<Mark>) -> u64 {
        self.with_sink(sink, |state| state.mark = mark)
    }

    /// Changes the state of a sink, and returns the number of the change.
    pub(crate) fn with_sink(&self, sink: &SinkName, change: impl FnOnce(&mut SinkProgress)) -> u64 {
        let mut inner = self.lock();
        inner.changes += 1;
        change(inner.state.sinks.entry(sink.clone()).or_default());
        inner.changes
    }

    pub(crate) fn with_lane<T>(&self, lane: &Lane, change: impl FnOnce(&mut LaneProgress) -> T) -> T {
        let mut inner = self.lock();
        inner.changes += 1;
        let sink = inner.state.sinks.entry(lane.sink.clone()).or_default();
        let shard = usize::from(lane.shard);
        if sink.lanes.len() <= shard {
            sink.lanes.resize_with(shard + 1, LaneProgress::default);
        }
        change(&mut sink.lanes[shard])
    }

    /// A copy of the state of a lane.
    pub fn lane(&self, lane: &Lane) -> LaneProgress {
        self.with_lane(lane, |state| state.clone())
    }

    /// The lane's cursor is confirmed by its store.
    pub fn confirm(&self, lane: &Lane) {
        let (cursor, is_news) = self.with_lane(lane, |state| {
            (state.confirmed, state.dispute) = (true, None);
            (state.cursor, state.unconfirmed_since.take().is_some())
        });
        if is_news {
            let by = self.lock().changes + 1;
            self.with_lane(lane, |state| state.confirmed_in = by);
        }
        self.waiting.advance(&lane.sink, lane.shard, cursor);
    }

    /// Waits until both generations are saved with the answer of a lane's store.
    pub async fn answer_saved(&self, lane: &Lane) {
        self.saved_with(self.lane(lane).confirmed_in).await;
    }

    /// Waits until both generations are saved with this change.
    pub async fn saved_with(&self, change: u64) {
        let mut saved = self.saved.subscribe();
        if *saved.borrow_and_update() < change {
            self.wanted.send_if_modified(|wanted| std::mem::replace(wanted, change.max(*wanted)) < change);
            // The sender lives as long as the ledger.
            let _ = saved.wait_for(|saved| *saved >= change).await;
        }
    }

    /// Whether a caller waits for it to be saved.
    pub fn has_waiters(&self) -> bool {
        *self.wanted.borrow() > *self.saved.borrow()
    }

    /// Waits until a client waits for the lane.
    pub async fn asked(&self, lane: &Lane) {
        self.waiting.asked(&lane.sink, lane.shard).await;
    }

    /// Notifies of each caller that begins to wait for it to be saved.
    pub fn save_requests(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Both generations are saved with the state at `stamp`, or a later one.
    pub fn note_saved(&self, stamp: &Stamp) {
        self.saved.send_if_modified(|saved| stamp.changes > std::mem::replace(saved, stamp.changes.max(*saved)));
    }

    /// The events of type `name` that a lane delivers. `None` if there are none.
    pub(crate) fn passage(&self, lane: &Lane, name: &TypeName) -> Option<Passage> {
        let mut inner = self.lock();
        inner.state.register_type(name);
        let sink = inner.state.sinks.get(&lane.sink)?;
        let route = sink.routes.get(name)?;
        let start = sink.lanes.get(usize::from(lane.shard)).map_or(0, |lane| lane.start);
        Some(route.passage(lane.shard, (start, u64::MAX)))
    }

    /// Everything of a lane up to `cursor` has its outcome.
    pub fn advance_cursor(&self, lane: &Lane, cursor: u64, tally: &Tally, lost: u64) {
        self.with_lane(lane, |state| {
            debug_assert!(state.cursor <= cursor, "a cursor moves on");
            if lost > 0 {
                let first = state.lost_within.map_or(state.cursor + 1, |(first, _)| first);
                state.lost_within = Some((first, cursor));
            }
            state.cursor = cursor;
            state.lost += lost;
            for (name, outcomes) in tally {
                match state.outcomes.get_mut(name) {
                    Some(sum) => sum.add(*outcomes),
                    None => drop(state.outcomes.insert(name.clone(), *outcomes)),
                }
            }
        });
        self.waiting.advance(&lane.sink, lane.shard, cursor);
    }

    /// The lane delivers none of the events after its cursor up to `position`, so no request waits for it to pass them.
    /// The cursor stays: nothing is counted or saved, and segments are kept.
    pub fn skip(&self, lane: &Lane, position: u64) {
        let mut inner = self.lock();
        let sink = inner.state.sinks.get_mut(&lane.sink);
        let Some(state) = sink.and_then(|sink| sink.lanes.get_mut(usize::from(lane.shard))) else { return };
        state.skipped_to = position;
        drop(inner);
        self.waiting.advance(&lane.sink, lane.shard, position);
    }

    /// The lanes that have not ended all of the events.
    pub fn pending(&self, asked: &WatchRequest) -> Vec<PendingLane> {
        self.lock().state.pending(asked)
    }

    /// The sinks whose dead letters have been counted: each has a journal of them.
    pub fn sinks_with_dead_letters(&self) -> Vec<SinkName> {
        let inner = self.lock();
        inner.state.sinks.iter().filter(|(_, sink)| sink.dead_up_to > 0).map(|(name, _)| name.clone()).collect()
    }

    /// The position up to which the journal of the sink's dead letters is counted.
    pub fn dead_up_to(&self, sink: &str) -> u64 {
        self.lock().state.sinks.get(sink).map_or(0, |sink| sink.dead_up_to)
    }

    /// The journal of the sink's dead letters reaches `position`, and `recounts` are the changes that its newest part
    /// contains. Dead letters beyond their lane's cursor are not counted yet: the lane will count them.
    pub fn count_dead(&self, name: &str, position: u64, recounts: &[Recount]) {
        let mut inner = self.lock();
        inner.changes += 1;
        let Some(sink) = inner.state.sinks.get_mut(name) else { return };
        let mut ended = Vec::new();
        for Recount { shard, sequence, type_name, is_stored, was_pending } in recounts {
            let lane = sink.lanes.get_mut(usize::from(*shard)).filter(|lane| *sequence <= lane.cursor);
            let Some(lane) = lane else { continue };
            if *was_pending {
                let outcomes = lane.outcomes.entry(type_name.clone()).or_default();
                *(if *is_stored { &mut outcomes.stored } else { &mut outcomes.dead }) += 1;
                ended.push((*shard, lane.cursor));
            } else if let Some(outcomes) = lane.outcomes.get_mut(type_name) {
                outcomes.move_one(*is_stored);
            }
        }
        sink.dead_up_to = sink.dead_up_to.max(position);
        drop(inner);
        ended.dedup();
        ended.into_iter().for_each(|(shard, cursor)| self.waiting.advance(name, shard, cursor));
    }

    /// Whether the route's backlog at this sequence was discarded.
    pub fn is_discarded(&self, sink: &str, type_name: &TypeName, shard: u16, sequence: u64) -> bool {
        let inner = self.lock();
        let Some(sink) = inner.state.sinks.get(sink) else { return false };
        sink.routes.get(type_name).is_none_or(|route| sequence <= route.bounds(shard).0)
    }

    /// Whether the lane of the sink and shard has passed an event, so the event is counted.
    pub fn has_passed(&self, sink: &str, shard: u16, sequence: u64) -> bool {
        let inner = self.lock();
        let lane = inner.state.sinks.get(sink).and_then(|sink| sink.lanes.get(usize::from(shard)));
        lane.is_some_and(|lane| sequence <= lane.cursor)
    }

    /// The store has lost the events after `cursor`: they are pending again.
    pub fn take_back(&self, lane: &Lane, cursor: u64, tally: &Tally, lost: u64) {
        self.with_lane(lane, |state| {
            (state.cursor, state.skipped_to) = (cursor, 0);
            state.lost = self.or_error(state.lost.checked_sub(lost)).unwrap_or(0);
            for (name, outcomes) in tally {
                let sum = state.outcomes.entry(name.clone()).or_default();
                *sum = self.or_error(sum.less(*outcomes)).unwrap_or_default();
            }
        });
    }
}
