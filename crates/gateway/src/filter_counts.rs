//! Events that transforms have dropped, counted by type and step. Few events are counted one at a time, and those of a batch together, so
//! a lock suffices.

use std::sync::Arc;

use event::TypeName;
use eventlog::{Accepted, FilterStep};
use transform::Filtered;

use crate::event_types::GatewayTypes;

/// The counts of a data directory.
#[derive(Debug)]
pub(crate) struct FilterCounts(Arc<Accepted>);

impl FilterCounts {
    pub(crate) const fn new(counts: Arc<Accepted>) -> Self {
        Self(counts)
    }

    /// Lists the steps of these types from now on, even if they have dropped nothing.
    pub(crate) fn show(&self, types: &GatewayTypes) {
        for (name, rules) in &types.named {
            for by in rules.steps.iter().flat_map(|steps| steps.filters()) {
                self.add(name, by, 0);
            }
        }
    }

    pub(crate) fn add(&self, type_name: &TypeName, by: Filtered, events: u64) {
        let step = FilterStep { type_name: type_name.clone(), step: by.step, operation: by.operation.into() };
        *self.0.hold().filtered.entry(step).or_default() += events;
    }

    pub(crate) fn list(&self) -> Vec<(FilterStep, u64)> {
        self.0.hold().filtered.iter().map(|(step, events)| (step.clone(), *events)).collect()
    }
}
