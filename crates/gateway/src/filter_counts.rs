//! Events that steps took out, counted by type and step. Few events are counted one at a time, and those of a batch
//! together: a lock does.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TypeName;
use pipeline::transform::Filtered;

use crate::type_table::GatewayTypes;

/// Events that a step of a type has taken out since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteredEvents {
    /// The type.
    pub type_name: TypeName,
    /// The step, from 1.
    pub step: usize,
    /// What it does: `filter`, `sample`, `dedupe`, or `explode` where there was nothing in the array.
    pub operation: &'static str,
    /// How many.
    pub events: u64,
}

type Counts = BTreeMap<(TypeName, usize, &'static str), u64>;

/// The counts of a process.
#[derive(Debug, Default)]
pub(crate) struct FilterCounts(Mutex<Counts>);

impl FilterCounts {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the steps of these types are listed, though they have taken out nothing.
    pub(crate) fn show(&self, types: &GatewayTypes) {
        let mut counts = self.counts();
        for (name, rules) in &types.named {
            for Filtered { step, operation } in rules.steps.iter().flat_map(|steps| steps.filters()) {
                counts.entry((name.clone(), step, operation)).or_default();
            }
        }
    }

    pub(crate) fn add(&self, type_name: &TypeName, by: Filtered, events: u64) {
        *self.counts().entry((type_name.clone(), by.step, by.operation)).or_default() += events;
    }

    pub(crate) fn list(&self) -> Vec<FilteredEvents> {
        let listed = |((type_name, step, operation), events): (&(TypeName, usize, &'static str), &u64)| {
            FilteredEvents { type_name: type_name.clone(), step: *step, operation, events: *events }
        };
        self.counts().iter().map(listed).collect()
    }
}
