//! What is appended meets what came before.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::EventId;
use journal::Given;

use super::batch::{Batch, Cause};
use super::earlier::{Earlier, is_durable};
use super::given::in_part;
use super::memory::Memory;
use super::window::{Place, Seen};

/// What an id was met with that isn't new.
pub(crate) enum Met {
    Again(Earlier),
    OtherBytes,
    /// Some of the batch is taken and some isn't, and nobody has said by what each record is known.
    InPart,
    Nothing,
    /// It leans on what isn't durable yet.
    Unsettled(Earlier),
}

/// The meeting of what is appended next.
pub(crate) struct Meeting<'a> {
    pub(crate) memory: &'a Arc<Memory>,
    /// The ids of the turn.
    pub(crate) given: &'a mut Vec<(EventId, Place)>,
    /// Where it will stand. Of a batch all events are remembered at its first place: where each will stand isn't known
    /// before all have met, and any place in it is as durable.
    pub(crate) place: Place,
    /// Ids were remembered and forgotten again: whoever met them meanwhile waits for what won't be.
    pub(crate) has_forgotten: bool,
    /// How often ids were forgotten before it.
    forgets: u64,
}

/// What the lines of a batch were met with.
#[derive(Default)]
struct Sorted {
    again: Vec<(u32, Earlier)>,
    refused: BTreeMap<u32, Cause>,
}

impl<'a> Meeting<'a> {
    pub(crate) fn new(memory: &'a Arc<Memory>, given: &'a mut Vec<(EventId, Place)>, place: Place) -> Self {
        Self { memory, given, place, has_forgotten: false, forgets: memory.forgets() }
    }
}

impl Meeting<'_> {
    /// Remembers an id that a client gave, unless it is known.
    pub(crate) fn event(&mut self, id: EventId, content: u64) -> Result<(), Met> {
        match self.memory.window().meet(id, content, self.place) {
            Seen::Never => {
                self.given.push((id, self.place));
                Ok(())
            }
            Seen::Same(place) => Err(Met::Again(self.earlier(id, content, place))),
            Seen::Other => Err(Met::OtherBytes),
        }
    }

    fn earlier(&self, id: EventId, content: u64, place: Place) -> Earlier {
        Earlier { memory: self.memory.clone(), id, content, place, forgets: self.forgets }
    }

    /// Remembers the ids of a batch, and drops from it what came before, and lines that aren't taken.
    pub(crate) fn batch(&mut self, batch: &mut Batch) -> Result<(), Met> {
        let given_before = self.given.len();
        let met = self.lines(batch);
        if met.is_err() {
            // Nothing is appended: the place will be another event's.
            self.forget_since(given_before);
        }
        met
    }

    fn lines(&mut self, batch: &mut Batch) -> Result<(), Met> {
        let came_in_part = batch.key.map_or(Ok(false), |key| self.came_in_part(key))?;
        if came_in_part && !batch.knows_each {
            return Err(Met::InPart);
        }
        let given_before = self.given.len();
        let mut sorted = self.sort(batch, Sorted::default());
        if !sorted.refused.is_empty() && !batch.leaning.is_empty() {
            // What was left out for the sake of a line that isn't taken would be nowhere.
            self.forget_since(given_before);
            let leaning = batch.leaning.iter().map(|line| (*line, Cause::Leaning));
            let refused = leaning.chain(sorted.refused).collect();
            sorted = self.sort(batch, Sorted { refused, ..Sorted::default() });
        }
        if batch.settles_first
            && let Some((_, unsettled)) = self.take_unsettled(&mut sorted.again)
        {
            return Err(Met::Unsettled(unsettled));
        }
        if batch.is_atomic && !sorted.refused.is_empty() {
            batch.drop_met(sorted.again, sorted.refused);
            return Err(Met::Nothing);
        }
        // It may be known as a whole only where all of it stands in its own block: what another request has made durable, or will,
        // may be lost when this isn't.
        let leans_on_others = batch.lacks_some || !sorted.again.is_empty();
        let is_in_part = came_in_part || batch.knows_each || leans_on_others || !sorted.refused.is_empty();
        if batch.key.is_some() && is_in_part && !batch.knows_each {
            return Err(Met::InPart);
        }
        if let Some(key) = batch.key {
            self.key(key, is_in_part)?;
        }
        batch.drop_met(sorted.again, sorted.refused);
        if batch.records.is_empty() {
            return Err(Met::Nothing);
        }
        if let Some(key) = batch.key {
            batch.records.set_batch(if is_in_part { in_part(key) } else { key });
        }
        Ok(())
    }

    /// One of these that isn't durable yet, if there is any. What stands in the batch itself is as durable as that.
    fn take_unsettled(&self, again: &mut Vec<(u32, Earlier)>) -> Option<(u32, Earlier)> {
        let is_open = |earlier: &Earlier| earlier.place != self.place && self.memory.behind(earlier.place).is_some();
        let mut unsettled = again.iter().position(|(_, earlier)| is_open(earlier));
        if unsettled.is_none() && self.memory.forgets() != self.forgets {
            // The place of one that was forgotten meanwhile may be another event's.
            unsettled = again.iter().position(|(_, earlier)| earlier.place != self.place && !is_durable(earlier));
        }
        unsettled.map(|index| again.swap_remove(index))
    }

    /// Remembers the key of a batch. Another shard may have been quicker with the same batch since the key was looked up: both remember
    /// theirs before they look for the other's, so that one of them sees it.
    fn key(&mut self, key: Given, is_in_part: bool) -> Result<(), Met> {
        let (own, other) = if is_in_part { (in_part(key), key) } else { (key, in_part(key)) };
        match self.event(own.id, own.content) {
            // Each of its records is known by itself. Where the key stands in another shard's block that is never written it will be
            // forgotten, and what this shard takes now would be known by nothing.
            Err(Met::Again(earlier)) if is_in_part => {
                let is_elsewhere = earlier.position().shard != self.place.position().shard;
                if is_elsewhere && self.memory.behind(earlier.place).is_some() {
                    return Err(Met::Unsettled(earlier));
                }
            }
            met => met?,
        }
        match self.memory.window().look_up(other.id, other.content) {
            Seen::Never => Ok(()),
            Seen::Same(place) if is_in_part => Err(Met::Again(self.earlier(other.id, other.content, place))),
            Seen::Same(_) => Err(Met::InPart),
            Seen::Other => Err(Met::OtherBytes),
        }
    }

    /// Whether a batch with this key came before and some of it wasn't taken: then each of its records is known by itself.
    fn came_in_part(&self, key: Given) -> Result<bool, Met> {
        let window = self.memory.window();
        match window.look_up(key.id, key.content) {
            Seen::Same(place) => return Err(Met::Again(self.earlier(key.id, key.content, place))),
            Seen::Other => return Err(Met::OtherBytes),
            Seen::Never => {}
        }
        let key = in_part(key);
        match window.look_up(key.id, key.content) {
            Seen::Same(_) => Ok(true),
            Seen::Other => Err(Met::OtherBytes),
            Seen::Never => Ok(false),
        }
    }

    /// Remembers the ids of the lines that are taken: each as a whole or not at all, one after the other, so that none is known by
    /// an id of one that isn't. Those that `sorted` refuses already are passed over.
    fn sort(&mut self, batch: &Batch, mut sorted: Sorted) -> Sorted {
        for line in batch.own.chunk_by(|one, next| batch.line_of(one.number) == batch.line_of(next.number)) {
            let number = line.first().map_or(0, |own| batch.line_of(own.number));
            if sorted.refused.contains_key(&number) {
                continue;
            }
            let (given_before, again_before) = (self.given.len(), sorted.again.len());
            for own in line {
                match self.event(own.id, own.content) {
                    Err(Met::Again(earlier)) => sorted.again.push((own.number, earlier)),
                    Err(_) => drop(sorted.refused.insert(number, Cause::OtherBytes)),
                    Ok(()) => {}
                }
            }
            if sorted.refused.contains_key(&number) {
                sorted.again.truncate(again_before);
                self.forget_since(given_before);
            }
        }
        sorted
    }

    fn forget_since(&mut self, count: usize) {
        let forgotten = self.given.split_off(count);
        self.has_forgotten |= !forgotten.is_empty();
        self.memory.forget(&forgotten);
    }
}
