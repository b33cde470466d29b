//! The events of a batch that its transforms have dropped.

use std::collections::BTreeMap;

use event::TypeName;
use transform::Filtered;

use super::RecordBuilder;
use crate::event_types::Slot;
use crate::ingest::pipeline::Made;
use crate::ingest::windows::WindowSet;

/// The dropped events.
#[derive(Default)]
pub(super) struct FilteredEvents {
    counts: Vec<(Slot, Filtered, u64)>,
    /// What was dropped of a line because an earlier line of the batch has the same value, by line.
    dependents: BTreeMap<u32, Dependent>,
}

struct Dependent {
    slot: Slot,
    filtered: Vec<Filtered>,
    /// Nothing is left of the line.
    is_whole: bool,
}

impl FilteredEvents {
    pub(super) fn count(&mut self, slot: Slot, by: Filtered) {
        match self.counts.iter_mut().find(|(known, step, _)| (*known, *step) == (slot, by)) {
            Some((.., count)) => *count += 1,
            None => self.counts.push((slot, by, 1)),
        }
    }

    pub(super) fn add_dependent(&mut self, line: u32, slot: Slot, made: &Made<'_>) {
        let (filtered, is_whole) = match made {
            Made::Filtered(by) => (vec![*by], true),
            Made::Several { events, filtered } => (filtered.clone(), events.is_empty()),
            Made::One(_) => (Vec::new(), false),
        };
        self.dependents.insert(line, Dependent { slot, filtered, is_whole });
    }
}

impl RecordBuilder {
    /// Continues with the windows that a single event has used.
    pub(crate) fn with_windows(mut self, windows: WindowSet) -> Self {
        self.refused_commits = windows.refused_commits;
        self.windows = self.slot.map(|slot| windows.moved_to(slot)).unwrap_or_default();
        self
    }

    /// The records are appended: other requests see the values of their events.
    pub(crate) fn keep_windows(&mut self) {
        // A duplicate may not be durable yet, and of an event with a reused id nothing is stored.
        if !self.batch.result.rejected.is_empty() || !self.batch.result.duplicates.is_empty() {
            return self.windows.clear();
        }
        self.windows.keep();
    }

    /// A line is rejected in the end: what was dropped of it isn't counted.
    pub(super) fn forget_filtered(&mut self, line: u32) {
        let Some(Dependent { slot, filtered, is_whole }) = self.filtered_events.dependents.remove(&line) else {
            return;
        };
        self.filtered -= u64::from(is_whole);
        for by in filtered {
            let counts = &mut self.filtered_events.counts;
            if let Some((.., count)) = counts.iter_mut().find(|(known, step, _)| (*known, *step) == (slot, by)) {
                *count -= 1;
            }
        }
    }

    /// Whether so many bytes probably cost more than other requests should wait for.
    pub(crate) fn is_costly(&self, bytes: usize) -> bool {
        if self.budget.is_spent() && bytes > 0 {
            return true;
        }
        self.slot.into_iter().chain(self.windows.slots()).any(|slot| self.types.get(slot).is_costly(bytes))
    }

    /// The dropped events, by type and step.
    pub(crate) fn filtered_by(&self) -> impl Iterator<Item = (&TypeName, Filtered, u64)> {
        let some = self.filtered_events.counts.iter().filter(|(.., count)| *count > 0);
        some.map(|(slot, by, count)| (&self.types.get(*slot).name, *by, *count))
    }

    /// Whether an event was dropped as a duplicate of another one, which must become durable.
    pub(crate) fn depends_on_others(&self) -> bool {
        self.filtered_events.counts.iter().any(|(_, by, _)| by.is_duplicate())
    }
}
