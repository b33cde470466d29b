//! How many events were accepted, by type. Events are counted when they are durable, before their requests get the
//! response. Events that steps removed are never journaled: they are counted here too, so both counts are of one moment
//! and saved together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TypeName;

use crate::type_registry::TypeId;

/// A step of a type that removes events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterStep {
    /// The type.
    pub type_name: TypeName,
    /// The step, from 1.
    pub step: usize,
    /// Its operation: `filter`, `sample`, `dedupe`, or `explode` if the array was empty.
    pub operation: Cow<'static, str>,
}

/// The counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedCounts {
    /// Events by type's number since the data directory began.
    pub by_type: Vec<u64>,
    /// For each shard the last sequence that is counted.
    pub counted_up_to: Vec<u64>,
    /// Events that steps took out, since the data directory began.
    pub filtered: BTreeMap<FilterStep, u64>,
}

/// The counts of all shards. The guard shows them at one moment: a delivery that reads its own counts while it holds
/// the guard never sees more outcomes than events.
#[derive(Debug, Default)]
pub struct Accepted(Mutex<AcceptedCounts>);

impl Accepted {
    pub(crate) fn new(counts: AcceptedCounts) -> Self {
        Self(Mutex::new(counts))
    }

    /// The counts, held still.
    pub fn hold(&self) -> MutexGuard<'_, AcceptedCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, shard: u16, durable: u64, counts: &TypeCounts) {
        let mut held = self.hold();
        counts.add_to(&mut held.by_type);
        held.counted_up_to[usize::from(shard)] = durable;
    }
}

/// The events of one block by type.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeCounts(Vec<(TypeId, u64)>);

impl TypeCounts {
    /// Most blocks have few types, and the events of one request are adjacent.
    pub(crate) fn count(&mut self, id: TypeId, events: u64) {
        match self.0.iter_mut().rfind(|(known, _)| *known == id) {
            Some((_, count)) => *count += events,
            None => self.0.push((id, events)),
        }
    }

    pub(crate) fn add_to(&self, totals: &mut Vec<u64>) {
        for (id, events) in &self.0 {
            if totals.len() <= id.index() {
                totals.resize(id.index() + 1, 0);
            }
            totals[id.index()] += events;
        }
    }
}
