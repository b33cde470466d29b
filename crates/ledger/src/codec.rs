//! The ledger as it is saved: [facts](eventlog::encode_facts). `docs/internals/journal-format.md` has an example.
//!
//! A list by shard begins with shard 0. After [`Fact::Sink`] come the facts of this sink, and after [`Fact::Lane`] and
//! [`Fact::RouteState`] those that add to them.

use std::collections::BTreeSet;
use std::io;

use event::TypeName;
use eventlog::{FactFormat, FilterStep, InvalidFact, decode_facts, encode_facts};
use serde::{Deserialize, Serialize};
use sink::{Claim, Mark};

use crate::condition::{Condition, Term};
use crate::dispute::Accept;
use crate::outcomes::OutcomeCounts;
use crate::route_state::{Closed, Gap, RouteState};
use crate::routes::SinkName;
use crate::state::{LaneProgress, LedgerState, SinkProgress};

const FORMAT: FactFormat = FactFormat {
    name: "forebay-ledger",
    renamed: &[
        ("counted", "counted_up_to"),
        ("others", "other_routes"),
        ("counted-lost", "counted_lost"),
        ("dead", "dead_up_to"),
        ("mark", "store_id"),
        ("unheard", "unconfirmed_since"),
        ("pair", "route_state"),
        ("pair-lost", "route_lost"),
        ("when", "route_condition"),
    ],
};

/// Everything that is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// By shard the last position that is counted as accepted.
    pub counted_up_to: Vec<u64>,
    pub(crate) accepted: Vec<(TypeName, u64)>,
    pub(crate) filtered: Vec<(FilterStep, u64)>,
    /// The routes and the progress of each sink.
    pub state: LedgerState,
}

/// `docs/internals/journal-format.md` says what they mean. The order of fields is version 1's.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Fact {
    CountedUpTo(Vec<u64>),
    Accepted { r#type: TypeName, events: u64 },
    Filtered { r#type: TypeName, step: usize, operation: String, events: u64 },
    Route { r#type: TypeName, sinks: BTreeSet<SinkName> },
    OtherRoutes(BTreeSet<SinkName>),
    Condition { r#type: Option<TypeName>, sink: SinkName, condition: Condition },
    CountedLost(u64),
    Derived(TypeName),
    Sink(SinkName),
    DeadUpTo(u64),
    Claims(Vec<Claim>),
    StoreId(Mark),
    Lane { shard: usize, start: u64, cursor: u64, lost: u64, ahead: bool },
    UnconfirmedSince { shard: usize, end: u64 },
    Accept { shard: usize, resend: bool },
    Outcome { shard: usize, r#type: TypeName, stored: u64, dead: u64, skipped: u64 },
    RouteState { r#type: TypeName, base: u64, from: Vec<u64>, accepted: Option<u64>, until: Vec<u64>, passed: bool },
    RouteLost { r#type: TypeName, events: u64 },
    Gap { r#type: TypeName, after: Vec<u64>, until: Vec<u64> },
    RouteCondition { r#type: TypeName, after: Vec<u64>, condition: Option<Condition> },
}

impl Document {
    /// The text of the file.
    ///
    /// # Errors
    /// JSON has no form for a fact.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let LedgerState { routes, sinks, derived, counted_lost } = &self.state;
        let mut facts = vec![Fact::CountedUpTo(self.counted_up_to.clone())];
        facts.extend(self.accepted.iter().cloned().map(|(r#type, events)| Fact::Accepted { r#type, events }));
        facts.extend(self.filtered.iter().cloned().map(|(step, events)| {
            let FilterStep { type_name, step, operation } = step;
            Fact::Filtered { r#type: type_name, step, operation: operation.into_owned(), events }
        }));
        facts
            .extend(routes.named().map(|(r#type, sinks)| Fact::Route { r#type: r#type.clone(), sinks: sinks.clone() }));
        facts.push(Fact::OtherRoutes(routes.others().clone()));
        facts.extend(routes.conditions().map(|(r#type, sink, condition)| Fact::Condition {
            r#type: r#type.cloned(),
            sink: sink.clone(),
            condition: condition.clone(),
        }));
        facts.push(Fact::CountedLost(*counted_lost));
        facts.extend(derived.iter().cloned().map(Fact::Derived));
        for (name, sink) in sinks {
            facts.extend([
                Fact::Sink(name.clone()),
                Fact::DeadUpTo(sink.dead_up_to),
                Fact::Claims(sink.claims.clone()),
            ]);
            facts.extend(sink.mark.map(Fact::StoreId));
            sink.lanes.iter().enumerate().for_each(|(shard, lane)| lane_facts(shard, lane, &mut facts));
            sink.routes.iter().for_each(|(name, route)| route_facts(name, route, &mut facts));
        }
        encode_facts(&FORMAT, facts)
    }

    /// Reads what [`Document::encode`] wrote, or version 1.
    pub(crate) fn decode(text: &[u8]) -> Result<Self, InvalidFact> {
        let (mut document, mut sink) = (Self::default(), None);
        let add = |fact| document.add(fact, &mut sink).ok_or_else(|| "the line that it extends is missing".to_owned());
        decode_facts(&FORMAT, text, add)?;
        Ok(document)
    }

    fn add(&mut self, fact: Fact, sink: &mut Option<SinkName>) -> Option<()> {
        let LedgerState { routes, sinks, derived, counted_lost } = &mut self.state;
        match fact {
            Fact::CountedUpTo(sequences) => self.counted_up_to = sequences,
            Fact::Accepted { r#type, events } => self.accepted.push((r#type, events)),
            Fact::Filtered { r#type: type_name, step, operation, events } => {
                self.filtered.push((FilterStep { type_name, step, operation: operation.into() }, events));
            }
            Fact::Route { r#type, sinks } => *routes = std::mem::take(routes).with(r#type, sinks),
            Fact::OtherRoutes(sinks) => *routes = std::mem::take(routes).with_others(sinks),
            Fact::Condition { r#type, sink, condition } => {
                *routes = std::mem::take(routes).when(r#type, sink, condition)
            }
            Fact::CountedLost(positions) => *counted_lost = positions,
            Fact::Derived(r#type) => drop(derived.insert(r#type)),
            Fact::Sink(name) => drop(sinks.insert(sink.insert(name).clone(), SinkProgress::default())),
            fact => add_to_sink(sinks.get_mut(sink.as_ref()?)?, fact)?,
        }
        Some(())
    }
}

fn lane_facts(shard: usize, lane: &LaneProgress, facts: &mut Vec<Fact>) {
    let LaneProgress { start, cursor, lost, ahead, .. } = *lane;
    facts.push(Fact::Lane { shard, start, cursor, lost, ahead });
    facts.extend(lane.unconfirmed_since.map(|end| Fact::UnconfirmedSince { shard, end }));
    facts.extend(lane.accept.map(|Accept { resend }| Fact::Accept { shard, resend }));
    facts.extend(lane.outcomes.iter().map(|(r#type, counts)| {
        let OutcomeCounts { stored, dead, skipped } = *counts;
        Fact::Outcome { shard, r#type: r#type.clone(), stored, dead, skipped }
    }));
}

fn route_facts(r#type: &TypeName, route: &RouteState, facts: &mut Vec<Fact>) {
    let named = || r#type.clone();
    let (base, from) = (route.base, route.from.clone());
    let Closed { until, accepted, passed } = route.closed.clone().unwrap_or_default();
    let accepted = route.closed.is_some().then_some(accepted);
    facts.push(Fact::RouteState { r#type: named(), base, from, accepted, until, passed });
    if route.lost > 0 {
        facts.push(Fact::RouteLost { r#type: named(), events: route.lost });
    }
    let gaps = route.gaps.iter().cloned();
    facts.extend(gaps.map(|Gap { after, until }| Fact::Gap { r#type: named(), after, until }));
    let terms = route.terms.0.iter().cloned();
    facts.extend(terms.map(|Term { after, when }| Fact::RouteCondition { r#type: named(), after, condition: when }));
}

/// `None` if the fact doesn't add to one before it.
fn add_to_sink(sink: &mut SinkProgress, fact: Fact) -> Option<()> {
    match fact {
        Fact::DeadUpTo(position) => sink.dead_up_to = position,
        Fact::Claims(claims) => sink.claims = claims,
        Fact::StoreId(mark) => sink.mark = Some(mark),
        Fact::Lane { shard, start, cursor, lost, ahead } if shard == sink.lanes.len() => {
            sink.lanes.push(LaneProgress { start, cursor, lost, ahead, ..LaneProgress::default() });
        }
        Fact::UnconfirmedSince { shard, end } => sink.lanes.get_mut(shard)?.unconfirmed_since = Some(end),
        Fact::Accept { shard, resend } => sink.lanes.get_mut(shard)?.accept = Some(Accept { resend }),
        Fact::Outcome { shard, r#type, stored, dead, skipped } => {
            sink.lanes.get_mut(shard)?.outcomes.insert(r#type, OutcomeCounts { stored, dead, skipped });
        }
        Fact::RouteState { r#type, base, from, accepted, until, passed } => {
            let closed = accepted.map(|accepted| Closed { until, accepted, passed });
            sink.routes.insert(r#type, RouteState { base, from, closed, ..RouteState::default() });
        }
        Fact::RouteLost { r#type, events } => sink.routes.get_mut(&r#type)?.lost = events,
        Fact::Gap { r#type, after, until } => sink.routes.get_mut(&r#type)?.gaps.push(Gap { after, until }),
        Fact::RouteCondition { r#type, after, condition: when } => {
            sink.routes.get_mut(&r#type)?.terms.0.push(Term { after, when });
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests;
