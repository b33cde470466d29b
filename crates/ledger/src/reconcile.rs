//! Reconciles the saved ledger with the configuration at a start: new routes begin, removed routes are closed, and the
//! equation of the ledger holds for all of them from the start.

use std::collections::{BTreeMap, HashMap};
use std::io;

use event::TypeName;
use eventlog::{AcceptedCounts, EventLog, Reader};

use crate::condition::{Passage, Terms};
use crate::route_state::{Closed, RouteState};
use crate::routes::{Routes, SinkName};
use crate::state::{LaneProgress, LedgerState, SinkProgress};

/// Where the routes to a new sink begin, and new routes to a known one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// With the next event.
    #[default]
    End,
    /// With the oldest event that the journal still has and the sink's lanes haven't passed.
    Oldest,
}

/// The part of a sink's configuration that the ledger needs.
#[derive(Clone, Copy, Debug)]
pub struct ConfiguredSink<'a> {
    /// Its name.
    pub name: &'a SinkName,
    /// Where new routes to it begin.
    pub begin: Begin,
    /// Whether its store keeps the cursors of its lanes.
    pub is_fenced: bool,
}

/// The configuration that the saved ledger is reconciled with.
#[derive(Clone, Debug)]
pub struct ConfiguredRoutes<'a> {
    /// Which types go to which sinks.
    pub routes: &'a Routes,
    /// The sinks.
    pub sinks: Vec<ConfiguredSink<'a>>,
    /// The types of the results of aggregates.
    pub results: Vec<&'a TypeName>,
}

/// Reads the events of a sink that are deferred.
pub type DeferredEvents<'a> = &'a dyn Fn(&SinkName) -> io::Result<Vec<(u16, u64, TypeName)>>;

/// The state of a start.
pub struct Reconciler<'a> {
    log: &'a EventLog,
    /// The deferred events of a sink: shard, sequence and type of each.
    deferred: DeferredEvents<'a>,
    /// Where the journal ends, and its counts.
    counts: AcceptedCounts,
    names: Vec<TypeName>,
    saved: Option<LedgerState>,
}

impl<'a> Reconciler<'a> {
    /// Compares `saved`, if there is one, with the opened log.
    pub fn new(log: &'a EventLog, deferred: DeferredEvents<'a>, routes: &Routes, saved: Option<LedgerState>) -> Self {
        for (name, _) in routes.named() {
            log.types().intern(name);
        }
        let counts = log.accepted().hold().clone();
        Self { log, deferred, counts, names: log.types().names(), saved }
    }

    /// The state to continue with, and whether routes have begun or ended.
    ///
    /// # Errors
    /// The journal, or that of dead letters, can't be read.
    pub fn reconcile(mut self, configuration: &ConfiguredRoutes<'_>) -> io::Result<(LedgerState, bool)> {
        let ConfiguredRoutes { routes, sinks, results } = configuration;
        let mut saved = self.saved.take();
        saved.iter_mut().for_each(|saved| self.register_types(saved));
        let mut state = saved.clone().unwrap_or_default();
        state.sinks.values_mut().for_each(SinkProgress::forget_process);
        for setup in sinks {
            let known = state.sinks.remove(setup.name);
            let sink = self.join_sink(known, setup, routes, saved.as_ref().map(|saved| &saved.routes))?;
            state.sinks.insert(setup.name.clone(), sink);
        }
        self.close_unrouted(&mut state, saved.as_ref(), routes);
        self.forget_unreadable(&mut state);
        let found_lost = self.count_lost(&mut state)?;
        state.derived.extend(results.iter().copied().cloned());
        let changed = found_lost
            || saved.is_none_or(|saved| {
                saved.routes != **routes || saved.sinks.len() != state.sinks.len() || saved.derived != state.derived
            });
        state.routes = (*routes).clone();
        Ok((state, changed))
    }

    /// Adds the types that are new since the state was saved: the saved routes apply to them.
    fn register_types(&self, saved: &mut LedgerState) {
        for (name, _) in self.names.iter().zip(&self.counts.by_type).filter(|(_, accepted)| **accepted > 0) {
            let routes = &saved.routes;
            for (sink, state) in saved.sinks.iter_mut().filter(|(sink, _)| routes.leads(name, sink)) {
                let when = routes.condition(name, sink);
                state.routes.entry(name.clone()).or_insert_with(|| RouteState::beginning(when));
            }
        }
    }

    fn join_sink(
        &self,
        known: Option<SinkProgress>,
        setup: &ConfiguredSink<'_>,
        routes: &Routes,
        before: Option<&Routes>,
    ) -> io::Result<SinkProgress> {
        let from_oldest = before.is_none() || setup.begin == Begin::Oldest;
        // The position of a store with separate cursors is known only after it was asked. The sink can no longer get
        // events that the store's cursor has passed, and skipped events would count as stored. After the end neither
        // can happen.
        let joins_after_cursors = from_oldest && (known.is_none() || !setup.is_fenced);
        let returns = known.is_some() && before.is_some_and(|before| !before.mentions(setup.name));
        let mut sink = SinkProgress { configured: true, ..known.unwrap_or_else(|| self.new_sink(from_oldest)) };
        sink.lanes.resize_with(self.log.shards().len().max(sink.lanes.len()), LaneProgress::default);
        let continues = returns && sink.waits();
        if returns && !continues {
            self.go_to_end(&mut sink);
        }
        let cursors: Vec<u64> = sink.lanes.iter().map(|lane| lane.cursor).collect();
        let mut waiting = Waiting { start: self, cursors: &cursors, counts: None };
        for (index, name) in self.names.iter().enumerate().filter(|(_, name)| routes.leads(name, setup.name)) {
            let accepted = self.counts.by_type.get(index).copied().unwrap_or(0);
            let had = sink.outcomes(name).total();
            let when = routes.condition(name, setup.name);
            let terms = Terms::beginning(when);
            let route = match sink.routes.get(name) {
                Some(route) if route.closed.is_none() => {
                    let mut route = route.clone();
                    route.terms.change(when, &self.counts.counted_up_to);
                    route
                }
                Some(route) if !route.is_discarded() => {
                    let mut route = route.clone();
                    route.restore(continues, &self.counts.counted_up_to, accepted);
                    // Its backlog is evaluated with the conditions that applied to it.
                    route.terms.change(when, &self.counts.counted_up_to);
                    route
                }
                // A type that first appeared after the ledger was saved: its route is as old as the type.
                None if before.is_some_and(|before| before.leads(name, setup.name)) => RouteState::beginning(when),
                _ if joins_after_cursors => {
                    let base = accepted.saturating_sub(had + waiting.of(name)?);
                    RouteState { base, from: cursors.clone(), terms, ..RouteState::default() }
                }
                _ => {
                    let from = self.counts.counted_up_to.clone();
                    RouteState { base: accepted.saturating_sub(had), from, terms, ..RouteState::default() }
                }
            };
            sink.routes.insert(name.clone(), route);
        }
        Ok(sink)
    }

    /// A sink that was added again and has no backlog begins at the journal's end.
    fn go_to_end(&self, sink: &mut SinkProgress) {
        for (lane, end) in sink.lanes.iter_mut().zip(&self.counts.counted_up_to) {
            lane.cursor = lane.cursor.max(*end);
            lane.start = lane.cursor;
        }
    }

    fn new_sink(&self, from_oldest: bool) -> SinkProgress {
        let lane = |start| LaneProgress { start, cursor: start, ..LaneProgress::default() };
        let ends = self.log.shards().iter().map(|shard| shard.recovered());
        let oldest = self.log.shards().iter().map(|shard| shard.segments().oldest().unwrap_or(1).saturating_sub(1));
        let lanes = if from_oldest {
            oldest.map(lane).collect()
        } else {
            self.counts.counted_up_to.iter().copied().map(lane).collect()
        };
        let mut sink = SinkProgress { lanes, ..SinkProgress::default() };
        sink.reset_confirmation(ends);
        sink
    }

    /// Closes the routes that are no longer configured, at the journal's end.
    fn close_unrouted(&self, state: &mut LedgerState, saved: Option<&LedgerState>, routes: &Routes) {
        for (index, name) in self.names.iter().enumerate() {
            let accepted = self.counts.by_type.get(index).copied().unwrap_or(0);
            for (sink, state) in &mut state.sinks {
                let leads = state.configured && routes.leads(name, sink);
                let was_closed = was_closed(saved, sink, name);
                let had_lanes = was_closed && saved.is_some_and(|saved| saved.routes.mentions(sink));
                let Some(route) = state.routes.get_mut(name).filter(|_| !leads) else { continue };
                let until = || self.counts.counted_up_to.clone();
                let closed = route.closed.get_or_insert_with(|| Closed { until: until(), accepted, passed: false });
                closed.passed |= state.configured || had_lanes;
            }
        }
    }

    /// Conditions and gaps of routes are needed as long as a lane may read their events again.
    fn forget_unreadable(&self, state: &mut LedgerState) {
        let oldest: Vec<u64> = self.log.shards().iter().map(|shard| shard.segments().oldest().unwrap_or(1)).collect();
        let routes = state.sinks.values_mut().flat_map(|sink| sink.routes.values_mut());
        routes.for_each(|route| route.forget(&oldest));
    }

    /// Counts the lost events of each route again, if more losses are known than at the last count: those without an
    /// outcome that no lane can read any longer. Returns whether it has counted.
    fn count_lost(&self, state: &mut LedgerState) -> io::Result<bool> {
        let known = state.known_lost(self.log.losses().all().len());
        if known == state.counted_lost {
            return Ok(false);
        }
        state.counted_lost = known;
        for (sink_name, sink) in &mut state.sinks {
            let readable = self.count_readable(sink)?;
            let mut deferred = BTreeMap::new();
            for (shard, sequence, name) in (self.deferred)(sink_name)? {
                let lane = sink.lanes.get(usize::from(shard));
                if lane.is_some_and(|lane| sequence <= lane.cursor) {
                    *deferred.entry(name).or_insert(0_u64) += 1;
                }
            }
            let known: Vec<u64> = sink.routes.keys().map(|name| sink.outcomes(name).total()).collect();
            for ((name, route), with_outcome) in sink.routes.iter_mut().zip(known) {
                let index = self.names.iter().position(|known| known == name);
                let accepted = index.and_then(|index| self.counts.by_type.get(index)).copied().unwrap_or(0);
                let accepted = route.closed.as_ref().map_or(accepted, |closed| closed.accepted);
                let rest = readable.get(name).copied().unwrap_or(0) + deferred.get(name).copied().unwrap_or(0);
                route.lost = accepted.saturating_sub(route.base + with_outcome + rest);
            }
        }
        Ok(true)
    }

    /// How many events of each of the sink's routes its lanes have yet to pass.
    fn count_readable(&self, sink: &SinkProgress) -> io::Result<BTreeMap<TypeName, u64>> {
        let mut counts = BTreeMap::new();
        for (shard, lane) in self.log.shards().iter().zip(&sink.lanes) {
            let number = shard.number();
            let end = self.counts.counted_up_to[usize::from(number)];
            let passage = |route: &RouteState| route.passage(number, (lane.cursor, end));
            let mut passages: HashMap<&str, (Passage, u64)> =
                sink.routes.iter().map(|(name, route)| (name.as_str(), (passage(route), 0))).collect();
            let mut reader = Reader::new(shard.segments().clone(), lane.cursor + 1);
            while let Some(chunk) = reader.read(end)? {
                chunk.for_each_record(|sequence, record| {
                    if let Some((passage, count)) = passages.get_mut(record.type_name) {
                        *count += u64::from(passage.covers(sequence));
                    }
                });
            }
            for name in sink.routes.keys() {
                let count = passages.get(name.as_str()).map_or(0, |(_, count)| *count);
                *counts.entry(name.clone()).or_insert(0) += count;
            }
        }
        Ok(counts)
    }

    /// How many events of each type follow these cursors.
    fn count_beyond(&self, cursors: &[u64]) -> io::Result<BTreeMap<TypeName, u64>> {
        let mut counts = BTreeMap::new();
        for (shard, cursor) in self.log.shards().iter().zip(cursors) {
            let end = self.counts.counted_up_to[usize::from(shard.number())];
            let mut reader = Reader::new(shard.segments().clone(), cursor + 1);
            while let Some(chunk) = reader.read(end)? {
                let mut count = |sequence: u64, name: &str| {
                    if sequence > *cursor
                        && sequence <= end
                        && let Ok(name) = TypeName::new(name)
                    {
                        *counts.entry(name).or_insert(0) += 1;
                    }
                };
                chunk.for_each_record(|at, record| count(at, record.type_name));
            }
        }
        Ok(counts)
    }
}

fn was_closed(saved: Option<&LedgerState>, sink: &SinkName, name: &TypeName) -> bool {
    let route = saved.and_then(|saved| saved.sinks.get(sink)).and_then(|sink| sink.routes.get(name));
    route.is_some_and(|route| route.closed.is_some())
}

/// The backlog of one sink, counted when it is first needed.
struct Waiting<'a> {
    start: &'a Reconciler<'a>,
    cursors: &'a [u64],
    counts: Option<BTreeMap<TypeName, u64>>,
}

impl Waiting<'_> {
    fn of(&mut self, name: &TypeName) -> io::Result<u64> {
        let counts = match &mut self.counts {
            Some(counts) => counts,
            none => none.insert(self.start.count_beyond(self.cursors)?),
        };
        Ok(counts.get(name).copied().unwrap_or(0))
    }
}
