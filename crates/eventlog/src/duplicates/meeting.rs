//! What is appended meets what came before.

use std::collections::BTreeSet;
use std::sync::Arc;

use event::EventId;
use journal::{Given, Records};

use super::earlier::Earlier;
use super::memory::Memory;
use super::window::{Place, Seen};
use crate::type_registry::TypeId;

/// What an id was met with that isn't new.
pub(crate) enum Met {
    Again(Earlier),
    OtherBytes,
    Nothing,
}

/// The events of a batch, ready to be appended; and afterwards what of it came before.
#[derive(Default)]
pub struct Batch {
    /// The events. Those that came before are dropped from them.
    pub records: Records,
    /// How many there are of each type.
    pub types: Vec<(TypeId, u64)>,
    /// What the batch as a whole is known by.
    pub key: Option<Given>,
    /// The events whose payloads have ids of their own.
    pub own: Vec<Own>,
    /// Nothing of it is to be appended if an id of it came before with other bytes.
    pub is_atomic: bool,
    /// First copies of events that came before, with the same bytes.
    pub again: Vec<Earlier>,
    /// Numbers of events whose ids came before, with other bytes.
    pub other_bytes: Vec<u32>,
}

impl Batch {
    /// Whether an id of it was given by a client.
    pub(crate) fn may_have_come_before(&self) -> bool {
        self.key.is_some() || !self.own.is_empty()
    }

    fn drop_met(&mut self, met: Vec<(Own, Met)>) {
        if met.is_empty() {
            return;
        }
        let dropped: BTreeSet<u32> = met.iter().map(|(own, _)| own.number).collect();
        for (own, met) in met {
            if let Some((_, events)) = self.types.iter_mut().find(|(id, _)| *id == own.type_id) {
                *events -= 1;
            }
            match met {
                Met::Again(earlier) => self.again.push(earlier),
                Met::OtherBytes => self.other_bytes.push(own.number),
                Met::Nothing => {}
            }
        }
        self.records.retain(|number| !dropped.contains(&number));
    }
}

/// An event of a batch that has an id of its own.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its number among the batch's records, from 0.
    pub number: u32,
    /// Its id.
    pub id: EventId,
    /// The hash of its payload.
    pub content: u64,
    /// Its type.
    pub type_id: TypeId,
}

/// The meeting of what is appended next.
pub(crate) struct Meeting<'a> {
    pub(crate) memory: &'a Arc<Memory>,
    /// The ids of the turn.
    pub(crate) given: &'a mut Vec<(EventId, Place)>,
    /// Where it will stand. Of a batch all events are remembered at its first place: where each will stand isn't known
    /// before all have met, and any place in it is as durable.
    pub(crate) place: Place,
}

impl Meeting<'_> {
    /// Remembers an id that a client gave, unless it is known.
    pub(crate) fn event(&mut self, id: EventId, content: u64) -> Result<(), Met> {
        match self.memory.window().meet(id, content, self.place) {
            Seen::Never => {
                self.given.push((id, self.place));
                Ok(())
            }
            Seen::Same(place) => Err(Met::Again(Earlier { memory: self.memory.clone(), id, content, place })),
            Seen::Other => Err(Met::OtherBytes),
        }
    }

    /// Remembers the ids of a batch, and drops from it what came before.
    pub(crate) fn batch(&mut self, batch: &mut Batch) -> Result<(), Met> {
        let given_before = self.given.len();
        if let Some(given) = batch.key {
            self.event(given.id, given.content)?;
        }
        let own = batch.own.iter().filter_map(|own| self.event(own.id, own.content).err().map(|met| (*own, met)));
        let met: Vec<_> = own.collect();
        batch.drop_met(met);
        if batch.records.is_empty() || batch.is_atomic && !batch.other_bytes.is_empty() {
            // Nothing is appended: the place will be another event's.
            self.memory.forget(&self.given.split_off(given_before));
            return Err(Met::Nothing);
        }
        if let Some(given) = batch.key {
            batch.records.set_batch(given);
        }
        Ok(())
    }
}
