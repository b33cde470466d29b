//! Which events of its shard a lane delivers. The answer for a type is looked up once; that for the type of the
//! record before is at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::{Lane, TypeName};

use crate::Ledger;

/// The rules of one lane, and the types they are for by *slot*.
pub(crate) struct Rules {
    ledger: Arc<Ledger>,
    lane: Lane,
    slots: BTreeMap<Box<str>, usize>,
    rules: Vec<Rule>,
    last: usize,
}

struct Rule {
    text: Box<str>,
    /// `None` for a type that never comes this way.
    name: Option<TypeName>,
    after: u64,
    until: u64,
}

impl Rules {
    pub(crate) const fn new(ledger: Arc<Ledger>, lane: Lane) -> Self {
        Self { ledger, lane, slots: BTreeMap::new(), rules: Vec::new(), last: 0 }
    }

    /// The slot of the type, if the lane delivers its event at `sequence`.
    pub(crate) fn slot_of(&mut self, type_name: &str, sequence: u64) -> Option<usize> {
        if self.rules.get(self.last).is_none_or(|rule| *rule.text != *type_name) {
            self.last = self.find(type_name);
        }
        let rule = &self.rules[self.last];
        (sequence > rule.after && sequence <= rule.until).then_some(self.last)
    }

    /// The type of a slot that [`Rules::slot_of`] has given.
    pub(crate) fn name(&self, slot: usize) -> Option<&TypeName> {
        self.rules.get(slot).and_then(|rule| rule.name.as_ref())
    }

    fn find(&mut self, text: &str) -> usize {
        if let Some(slot) = self.slots.get(text) {
            return *slot;
        }
        let name = TypeName::new(text).ok();
        let bounds = name.as_ref().and_then(|name| self.ledger.bounds(&self.lane, name));
        let (after, until) = bounds.unwrap_or((u64::MAX, 0));
        self.rules.push(Rule { text: text.into(), name, after, until });
        self.slots.insert(text.into(), self.rules.len() - 1);
        self.rules.len() - 1
    }
}
