//! The events of a batch, and by what they are known when they come again.

use std::collections::{BTreeMap, BTreeSet};

use event::EventId;
use journal::{Given, Records};

use super::earlier::Earlier;
use crate::type_registry::TypeId;

/// The events of a batch, ready to be appended; and afterwards what of it came before.
#[derive(Default)]
pub struct Batch {
    /// The events. Those that came before are dropped from them.
    pub records: Records,
    /// For each record what it was made of.
    pub lines: Vec<Line>,
    /// How many there are of each type.
    pub types: Vec<(TypeId, u64)>,
    /// What the batch as a whole is known by.
    pub key: Option<Given>,
    /// The events that are known by ids of their own, in their order.
    pub own: Vec<Own>,
    /// Lines of which something was left out because a line before had it too: they stand and fall with that.
    pub leaning: Vec<u32>,
    /// Some of what was sent isn't in it: it was refused, or left out for the sake of another event.
    pub lacks_some: bool,
    /// It is appended only where what came before is durable: else nobody could say afterwards what of it is. Not for who is answered
    /// from memory.
    pub settles_first: bool,
    /// Nothing of it is to be appended if an id of it came before with other bytes.
    pub is_atomic: bool,
    /// Each record is known by itself: see [`Batch::know_each`].
    pub knows_each: bool,
    /// Numbers and first copies of events that came before, with the same bytes.
    pub again: Vec<(u32, Earlier)>,
    /// Lines that aren't taken.
    pub refused: BTreeMap<u32, Cause>,
}

/// What a record was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the line, or of what else was sent as one. Later records have no smaller one.
    pub number: u32,
    /// The type of all its records.
    pub type_id: TypeId,
}

/// An event of a batch that is known by itself.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its number among the batch's records, from 0.
    pub number: u32,
    /// Its id.
    pub id: EventId,
    /// The hash of its payload, or of the batch where the batch's key has made its id.
    pub content: u64,
}

/// Why a line isn't taken when the others are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An id of it came before with other bytes.
    OtherBytes,
    /// Something of it was left out for the sake of a line that isn't taken.
    Leaning,
}

impl Batch {
    /// Has each record be known by itself, as it must be where a batch with a key isn't taken as a whole: when it comes again,
    /// what was taken is told from what wasn't. The records take more bytes then.
    pub fn know_each(&mut self) {
        let Some(key) = self.key.filter(|_| !self.knows_each) else { return };
        let known: BTreeSet<u32> = self.own.iter().map(|own| own.number).collect();
        self.records.set_contents(key.content, |number| known.contains(&number));
        let made = (0..).zip(self.records.ids()).filter(|(number, _)| !known.contains(number));
        self.own.extend(made.map(|(number, id)| Own { number, id, content: key.content }));
        self.own.sort_unstable_by_key(|own| own.number);
        self.knows_each = true;
    }

    /// The number of the line that a record was made of.
    #[must_use]
    pub fn line_of(&self, record: u32) -> u32 {
        line_of(&self.lines, record)
    }

    /// Whether an id of it was given by a client.
    pub(crate) fn may_have_come_before(&self) -> bool {
        self.key.is_some() || !self.own.is_empty()
    }

    /// Drops the records that came before, and those of lines that aren't taken.
    pub(super) fn drop_met(&mut self, again: Vec<(u32, Earlier)>, refused: BTreeMap<u32, Cause>) {
        if again.is_empty() && refused.is_empty() {
            return;
        }
        // There may be a hundred thousand, and the shard waits: so both go in order, and no set of them is made.
        let Self { records, lines, types, .. } = self;
        let mut repeated = again.iter().map(|(number, _)| *number).peekable();
        let mut is_dropped = |number| {
            let came_before = repeated.next_if_eq(&number).is_some();
            came_before || refused.contains_key(&line_of(lines, number))
        };
        records.retain(|number| {
            let is_dropped = is_dropped(number);
            if is_dropped && let Some(line) = lines.get(number as usize) {
                let counted = types.iter_mut().find(|(type_id, _)| *type_id == line.type_id);
                counted.into_iter().for_each(|(_, events)| *events -= 1);
            }
            !is_dropped
        });
        (self.again, self.refused) = (again, refused);
    }
}

fn line_of(lines: &[Line], record: u32) -> u32 {
    lines.get(record as usize).map_or(record, |line| line.number)
}
