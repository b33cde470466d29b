//! What the ledger knows of one event: the sinks that its type has or had a route to, and what each route decides.

use event::{Position, TypeName};

use crate::condition::{Passage, RouteDecision};
use crate::ledger::Ledger;
use crate::route_state::RouteState;
use crate::routes::SinkName;
use crate::state::SinkProgress;

/// The route of an event to one sink.
#[derive(Debug)]
pub struct EventRoute {
    /// The sink.
    pub sink: SinkName,
    /// Whether the sink is in the configuration.
    pub is_configured: bool,
    /// The cursor of the event's lane, if its position is known.
    pub cursor: Option<u64>,
    /// Whether the lane could not read the event, if its position is known: it is lost.
    pub is_lost: bool,
    position: Option<Position>,
    passage: Passage,
}

/// What the route decides about the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventDecision {
    /// It goes to the sink.
    Taken,
    /// The route began later, was removed before, or its backlog was discarded.
    Outside,
    /// This condition is false.
    Skipped(String),
    /// The condition can't be evaluated, with the reason: the event becomes a dead letter.
    Undecided(String),
    /// The route has a condition, and the payload or the condition at that time isn't known.
    Unknown,
}

impl EventRoute {
    fn of(sink: &SinkName, state: &SinkProgress, route: &RouteState, position: Option<Position>) -> Self {
        let shard = position.map_or(0, |position| position.shard);
        let lane = state.lanes.get(usize::from(shard));
        let start = lane.map_or(0, |lane| lane.start);
        let is_lost = |sequence| {
            lane.and_then(|lane| lane.lost_within).is_some_and(|(first, last)| (first..=last).contains(&sequence))
        };
        Self {
            sink: sink.clone(),
            is_configured: state.configured,
            cursor: lane.filter(|_| position.is_some()).map(|lane| lane.cursor),
            is_lost: position.is_some_and(|position| is_lost(position.sequence)),
            position,
            passage: route.passage(shard, (start, u64::MAX)),
        }
    }

    /// The decision. `payload` is that of the event, if it is known. Conditions may take some milliseconds.
    #[must_use]
    pub fn decide(&self, payload: Option<&[u8]>) -> EventDecision {
        let sequence = self.position.map(|position| position.sequence);
        if sequence.is_some_and(|sequence| !self.passage.covers(sequence)) {
            return EventDecision::Outside;
        }
        let conditions = &self.passage.conditions;
        if conditions.is_empty() {
            return EventDecision::Taken;
        }
        // Conditions are forgotten with the events that they were for.
        let is_forgotten = |sequence| conditions.first().is_some_and(|(after, _)| sequence <= *after && *after > 0);
        let (Some(payload), false) = (payload, sequence.is_some_and(is_forgotten)) else {
            return EventDecision::Unknown;
        };
        let sequence = sequence.unwrap_or(u64::MAX);
        match self.passage.judge(sequence, payload, &mut 0) {
            RouteDecision::Taken => EventDecision::Taken,
            RouteDecision::Undecided(reason) => EventDecision::Undecided(reason),
            RouteDecision::Skipped => {
                let term = conditions.iter().rev().find(|(after, _)| sequence > *after);
                let text = term.and_then(|(_, when)| when.as_ref()).map(ToString::to_string);
                EventDecision::Skipped(text.unwrap_or_default())
            }
        }
    }
}

impl Ledger {
    /// The routes of an event of this type, which may have a known position.
    #[must_use]
    pub fn event_routes(&self, name: &TypeName, position: Option<Position>) -> Vec<EventRoute> {
        let inner = self.lock();
        let state = &inner.state;
        let route = |(sink, progress): (&SinkName, &SinkProgress)| {
            // A type gets its routes with its first event. A question about one that has none must not add them.
            let begins = || RouteState::beginning(state.routes.condition(name, sink));
            let new = || (progress.configured && state.routes.leads(name, sink)).then(begins);
            let route = progress.routes.get(name).cloned().or_else(new)?;
            Some(EventRoute::of(sink, progress, &route, position))
        };
        state.sinks.iter().filter_map(route).collect()
    }
}
