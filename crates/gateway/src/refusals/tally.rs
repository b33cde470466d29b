//! What a batch keeps of its rejected records for counts, log and quarantine, until the batch ends on its shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RefusalCounts;
use super::label::TypeLabel;
use super::refused_event::{Capture, RefusedEvent, Rejected};
use super::samples::{RefusalSample, SAMPLES_MAX, Sender};
use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;
use crate::problem::Problem;

/// The rejected records of a batch.
#[derive(Debug, Default)]
pub(crate) struct RefusalTally {
    counts: BTreeMap<(TypeLabel, u8), u64>,
    pub(crate) samples: Vec<RefusalSample>,
    pub(crate) events: Vec<RefusedEvent>,
    event_bytes: usize,
    /// How many aren't stored because too many others were.
    pub(crate) left_out: u64,
    /// How many are to be stored as whole as their type's configuration allows.
    pub(crate) kept: u64,
}

impl RefusalTally {
    /// A record is rejected.
    pub(crate) fn add(&mut self, types: &TypeRegistry, sender: Sender<'_>, rejected: &Rejected<'_>) {
        self.count(types, sender, rejected.problem, rejected.line);
        match RefusedEvent::capture(types, rejected) {
            Capture::NotWanted => {}
            Capture::LeftOut => self.left_out += 1,
            Capture::Event(event) => {
                self.event_bytes += event.bytes();
                self.kept += u64::from(!event.is_cut());
                self.events.push(*event);
            }
        }
    }

    /// Counts a rejected record whose bytes aren't known.
    pub(crate) fn count(&mut self, types: &TypeRegistry, sender: Sender<'_>, problem: &Problem, line: Option<u32>) {
        let name = problem.type_name.as_deref();
        let label = TypeLabel::of(types, name, problem.code);
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(RefusalSample::of(types, &label, name, sender, problem, line));
        }
        *self.counts.entry((label, problem.code as u8)).or_default() += 1;
    }

    /// Adds the counts to those of the process.
    pub(crate) fn add_to(&self, counts: &RefusalCounts, source: &Arc<str>) {
        for ((label, code), count) in &self.counts {
            counts.add(label, source, ErrorCode::ALL[usize::from(*code)], *count);
        }
    }

    /// How many records were rejected.
    pub(crate) fn rejected(&self) -> u64 {
        self.counts.values().sum()
    }

    /// About how many bytes it takes in memory.
    pub(crate) const fn bytes(&self) -> usize {
        self.event_bytes
    }
}
