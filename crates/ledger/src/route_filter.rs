//! The route filter of a lane: which events of its shard it delivers. The answer is looked up once for each type, and the last answer is
//! cached.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::{Lane, TypeName};

use crate::condition::{Passage, RouteDecision};
use crate::ledger::Ledger;
use crate::outcomes::{OutcomeCounts, Tally};

/// Steps that conditions take in one slice, before other lanes continue: some milliseconds.
const STEPS_PER_SLICE: usize = 100_000;

/// The rules of one lane, and the types they are for by *slot*.
pub struct RouteFilter {
    ledger: Arc<Ledger>,
    lane: Lane,
    slots: BTreeMap<Box<str>, usize>,
    rules: Vec<TypeRoute>,
    last: usize,
    /// Steps that conditions took in this slice.
    spent: usize,
}

struct TypeRoute {
    text: Box<str>,
    /// `None` for a type that this lane never delivers.
    name: Option<TypeName>,
    passage: Passage,
}

/// The outcomes of events, by the slot of their type.
#[derive(Default)]
pub struct CountsBySlot(Vec<OutcomeCounts>);

impl CountsBySlot {
    /// The counts of a slot.
    pub fn of(&mut self, slot: usize) -> &mut OutcomeCounts {
        if self.0.len() <= slot {
            self.0.resize(slot + 1, OutcomeCounts::default());
        }
        &mut self.0[slot]
    }

    /// The counts by the names of the types.
    pub fn tally(&self, rules: &RouteFilter) -> Tally {
        let counted = self.0.iter().enumerate().filter(|(_, outcomes)| outcomes.total() > 0);
        counted.filter_map(|(slot, outcomes)| Some((rules.name(slot)?.clone(), *outcomes))).collect()
    }
}

impl RouteFilter {
    /// The rules of a lane, from the ledger.
    pub const fn new(ledger: Arc<Ledger>, lane: Lane) -> Self {
        Self { ledger, lane, slots: BTreeMap::new(), rules: Vec::new(), last: 0, spent: 0 }
    }

    /// The same rules, with nothing found in them yet.
    pub fn again(&self) -> Self {
        Self::new(self.ledger.clone(), self.lane.clone())
    }

    /// The slot of the type, if this lane delivers its event at `sequence`, or would without a condition.
    pub fn slot_of(&mut self, type_name: &str, sequence: u64) -> Option<usize> {
        if self.rules.get(self.last).is_none_or(|rule| *rule.text != *type_name) {
            self.last = self.find(type_name);
        }
        self.rules[self.last].passage.covers(sequence).then_some(self.last)
    }

    /// The route's decision about an event for which [`RouteFilter::slot_of`] returned this slot.
    pub fn judge(&mut self, slot: usize, sequence: u64, payload: &[u8]) -> RouteDecision {
        let Some(passage) = self.passage(slot).filter(|passage| !passage.conditions.is_empty()) else {
            return RouteDecision::Taken;
        };
        let mut spent = self.spent;
        let verdict = passage.judge(sequence, payload, &mut spent);
        self.spent = spent;
        verdict
    }

    /// A new slice begins.
    pub const fn begin_slice(&mut self) {
        self.spent = 0;
    }

    /// Whether conditions took so long that other lanes should continue.
    pub const fn is_slice_over(&self) -> bool {
        self.spent >= STEPS_PER_SLICE
    }

    /// The type of a slot that [`RouteFilter::slot_of`] returned.
    pub fn name(&self, slot: usize) -> Option<&TypeName> {
        self.rules.get(slot).and_then(|rule| rule.name.as_ref())
    }

    /// Which events of the type of a slot the lane delivers.
    pub fn passage(&self, slot: usize) -> Option<&Passage> {
        self.rules.get(slot).map(|rule| &rule.passage)
    }

    fn find(&mut self, text: &str) -> usize {
        if let Some(slot) = self.slots.get(text) {
            return *slot;
        }
        let name = TypeName::new(text).ok();
        let passage = name.as_ref().and_then(|name| self.ledger.passage(&self.lane, name));
        let passage = passage.unwrap_or_else(Passage::closed);
        self.rules.push(TypeRoute { text: text.into(), name, passage });
        self.slots.insert(text.into(), self.rules.len() - 1);
        self.rules.len() - 1
    }
}
