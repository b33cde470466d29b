//! An event in each of its sinks: what the routes, lanes, stores, dead letters and the progress say. Reads the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use admin_api::actions::ActionJson;
use admin_api::story::{EditJson, SinkOutcomeJson, SinkStoryJson};
use dead_letters::{Blocked, DeadLetterService, DeadLetters, DeadTrace, TracedOutcome};
use event::Position;
use ledger::EventRoute;

use super::known::KnownEvent;
use super::lane_view::LaneViews;
use super::outcome::{self, LaneSays, Outcome, SinkFacts, StoreSays};
use super::progress::{Bounds, ProgressSource};

/// What an event's sinks are asked about.
pub(super) struct Asked<'a> {
    pub(super) event: Option<&'a KnownEvent>,
    /// Also the first position of its batch.
    pub(super) position: Option<Position>,
    /// Only the event's own.
    pub(super) exact: Option<Position>,
    pub(super) lanes: &'a LaneViews,
    pub(super) stores: &'a BTreeMap<Arc<str>, StoreSays>,
    pub(super) progress: &'a dyn ProgressSource,
    pub(super) is_lost: bool,
    pub(super) actions: &'a [ActionJson],
}

/// Applies `read` to each sink's dead letters. Adds a sentence to `not_known` for each sink whose can't be read.
pub(super) fn in_dead_letters<T>(
    service: &DeadLetterService,
    not_known: &mut Vec<String>,
    read: impl Fn(&Arc<DeadLetters>) -> Result<Option<T>, Blocked>,
) -> BTreeMap<Arc<str>, T> {
    let mut found = BTreeMap::new();
    for queue in service.queues() {
        match read(&queue.dead) {
            Ok(Some(value)) => drop(found.insert(queue.dead.sink().clone(), value)),
            Ok(None) => {}
            Err(error) => not_known.push(format!("the dead letters of sink {}: {error}", queue.dead.sink())),
        }
    }
    found
}

impl Asked<'_> {
    /// The event in the sink of a route.
    pub(super) fn in_sink(
        &self,
        route: &EventRoute,
        dead: Option<&DeadTrace>,
        deferred: Option<&String>,
    ) -> SinkStoryJson {
        let sink = &*route.sink;
        let (lane, by_time) = self.lane(sink, route.cursor);
        let facts = SinkFacts {
            decision: route.decide(self.event.and_then(KnownEvent::payload_text)),
            dead: dead.map(|dead| (dead.outcome, dead.letter.reason.clone())),
            deferred: deferred.cloned(),
            store: self.stores.get(sink).cloned().unwrap_or(StoreSays::Nothing),
            is_lost: self.is_lost || route.is_lost,
            lane,
            is_configured: route.is_configured,
        };
        let Outcome { outcome, reason, condition, before_it } = outcome::of(&facts);
        let at = match outcome {
            SinkOutcomeJson::Dead | SinkOutcomeJson::Dropped => dead.and_then(|dead| dead.at).map(Bounds::exactly),
            SinkOutcomeJson::Stored if dead.is_some() => dead.and_then(|dead| dead.at).map(Bounds::exactly),
            SinkOutcomeJson::Stored => self.passed(sink).or(by_time),
            _ => None,
        };
        let position = self.position;
        let failures = match (self.event, outcome) {
            (
                Some(event),
                SinkOutcomeJson::Stored | SinkOutcomeJson::Pending | SinkOutcomeJson::Dead | SinkOutcomeJson::Deferred,
            ) => {
                let shard = position.map_or(0, |position| position.shard);
                self.progress.failures(shard, sink, event.received_at, at.map(|at| at.to))
            }
            _ => Vec::new(),
        };
        let object = self
            .event
            .zip(self.exact)
            .filter(|_| outcome == SinkOutcomeJson::Stored)
            .and_then(|(event, at)| self.progress.object_of(at.shard, sink, at.sequence, &event.type_name));
        SinkStoryJson {
            sink: sink.to_owned(),
            outcome,
            at: at.map(Bounds::json),
            before_it,
            server: self.writer(sink, outcome, dead.is_some()).or_else(|| failures.last()?.server.clone()),
            failures,
            object,
            condition,
            reason,
            edits: dead.map(|dead| self.edits(sink, dead)).unwrap_or_default(),
        }
    }

    fn lane(&self, sink: &str, saved: Option<u64>) -> (LaneSays, Option<Bounds>) {
        match (self.position, self.event) {
            (Some(position), _) => (self.lanes.at(sink, position, saved), None),
            (None, Some(event)) => self.lanes.by_time(sink, event.received_at, self.progress),
            (None, None) => (LaneSays::Unknown, None),
        }
    }

    fn passed(&self, sink: &str) -> Option<Bounds> {
        let Position { shard, sequence } = self.position?;
        let received_at = self.event.map_or(i64::MIN, |event| event.received_at);
        let passed = self.progress.passed(shard, sink, sequence)?;
        let bounds = Bounds { from: passed.from.max(received_at), ..passed };
        // Without a lower bound, or if the clock was set back, they say nothing.
        (i64::MIN < bounds.from && bounds.from <= bounds.to).then_some(bounds)
    }

    /// The writer of an event that the lane has stored. A replay's isn't known.
    fn writer(&self, sink: &str, outcome: SinkOutcomeJson, is_replayed: bool) -> Option<String> {
        let Position { shard, sequence } = self.position?;
        let is_stored = outcome == SinkOutcomeJson::Stored && !is_replayed;
        is_stored.then(|| self.progress.writer_of(shard, sink, sequence)).flatten()
    }

    /// The edits among the last actions.
    fn edits(&self, sink: &str, dead: &DeadTrace) -> Vec<EditJson> {
        let (id, prefix) = (dead.letter.id.to_string(), format!("{sink}: "));
        let of_sink =
            |result: &str| result.split("; ").any(|part| part.starts_with(&prefix) && part.contains("edited"));
        let is_edit = |action: &&ActionJson| action.target.contains(&id) && of_sink(&action.result);
        let edit = |action: &ActionJson| EditJson { at: action.at.clone(), by: action.by.clone() };
        let mut edits: Vec<EditJson> = self.actions.iter().filter(is_edit).map(edit).collect();
        edits.reverse();
        edits
    }
}

/// Whether the dead letter still has its event's payload.
pub(super) fn is_held(trace: &DeadTrace) -> bool {
    trace.outcome == TracedOutcome::Held
}
