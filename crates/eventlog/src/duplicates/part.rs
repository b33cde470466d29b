//! One part of the window: entries in the order in which they came, and an index by id. The oldest makes room for the
//! newest.
//!
//! The index is a table of open addressing with linear probing, which an entry leaves by shifting back those behind it
//! (Knuth, TAOCP 3, 6.4, algorithm R): no place is lost to what was removed.

use event::EventId;

use super::window::Entry;

/// An entry's place among the entries, and one more: 0 is an empty place.
type Slot = u32;

#[derive(Debug)]
pub(super) struct Part {
    /// A ring when it is full.
    entries: Vec<Option<Entry>>,
    entries_max: usize,
    /// Where the next entry goes in a full ring.
    next: usize,
    index: Vec<Slot>,
    len: usize,
}

const INDEX_MIN: usize = 16;

impl Part {
    /// Bytes that an entry takes at most, with its share of the index, which is at least three eighths full when the part
    /// is full.
    pub(super) const ENTRY_BYTES: usize = size_of::<Option<Entry>>() + 3 * size_of::<Slot>();

    pub(super) const fn new(entries_max: usize) -> Self {
        Self { entries: Vec::new(), entries_max, next: 0, index: Vec::new(), len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Option<Entry>>() + self.index.capacity() * size_of::<Slot>()
    }

    /// When the oldest entry came.
    pub(super) fn oldest(&self) -> Option<i32> {
        let (newer, older) = self.entries.split_at(self.next);
        older.iter().chain(newer).flatten().next().map(|entry| entry.at)
    }

    pub(super) fn find(&self, id: EventId, hash: u32) -> Option<&Entry> {
        self.place_of(id, hash).and_then(|place| self.entry(self.index[place]))
    }

    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries[slot as usize - 1].as_ref()
    }

    /// Where in the index an id stands.
    fn place_of(&self, id: EventId, hash: u32) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut place = self.home(hash);
        while self.index[place] != 0 {
            if self.entry(self.index[place]).is_some_and(|entry| entry.id == id) {
                return Some(place);
            }
            place = self.behind(place);
        }
        None
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.index.len() - 1)
    }

    fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.index.len() - 1)
    }

    /// Adds an entry whose id isn't there. `hash_of` is asked for the hashes of others that must move.
    pub(super) fn insert(&mut self, entry: Entry, hash: u32, hash_of: impl Fn(EventId) -> u32) {
        let at = if self.entries.len() < self.entries_max {
            self.make_room();
            self.entries.push(None);
            self.entries.len() - 1
        } else {
            let at = self.next;
            self.next = (at + 1) % self.entries_max;
            if let Some(oldest) = self.entries[at] {
                self.remove_with(oldest.id, hash_of(oldest.id), &hash_of);
            }
            at
        };
        if 4 * (self.len + 1) > 3 * self.index.len() {
            self.grow_index(&hash_of);
        }
        self.entries[at] = Some(entry);
        self.len += 1;
        self.put(slot(at), hash);
    }

    /// Doubles, but never takes more than is needed in the end.
    fn make_room(&mut self) {
        if self.entries.len() == self.entries.capacity() {
            let more = self.entries.len().max(INDEX_MIN);
            self.entries.reserve_exact(more.min(self.entries_max - self.entries.len()));
        }
    }

    fn grow_index(&mut self, hash_of: &impl Fn(EventId) -> u32) {
        self.index = vec![0; (self.index.len() * 2).max(INDEX_MIN)];
        for at in 0..self.entries.len() {
            if let Some(entry) = self.entries[at] {
                self.put(slot(at), hash_of(entry.id));
            }
        }
    }

    fn put(&mut self, slot: Slot, hash: u32) {
        let mut place = self.home(hash);
        while self.index[place] != 0 {
            place = self.behind(place);
        }
        self.index[place] = slot;
    }

    /// Removes an id. Its room among the entries is free when the ring comes round to it.
    pub(super) fn remove(&mut self, id: EventId, hash: u32, hash_of: impl Fn(EventId) -> u32) {
        self.remove_with(id, hash, &hash_of);
    }

    fn remove_with(&mut self, id: EventId, hash: u32, hash_of: &impl Fn(EventId) -> u32) {
        let Some(mut hole) = self.place_of(id, hash) else { return };
        self.entries[self.index[hole] as usize - 1] = None;
        self.len -= 1;
        let mut place = hole;
        loop {
            self.index[hole] = 0;
            // The next one that may stand in the hole: its home isn't between the hole and itself.
            loop {
                place = self.behind(place);
                let slot = self.index[place];
                if slot == 0 {
                    return;
                }
                let Some(entry) = self.entry(slot) else { continue };
                let home = self.home(hash_of(entry.id));
                let mask = self.index.len() - 1;
                if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                    self.index[hole] = slot;
                    hole = place;
                    break;
                }
            }
        }
    }
}

fn slot(at: usize) -> Slot {
    Slot::try_from(at + 1).expect("a part has fewer entries than a slot can name")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::window::Place;
    use super::*;

    fn id(number: u8) -> EventId {
        EventId([number; 16])
    }

    /// So few that most ids want the same places.
    fn hash_of(id: EventId) -> u32 {
        u32::from(id.0[0] % 5)
    }

    fn entry(number: u8, sequence: u64) -> Entry {
        Entry { id: id(number), content: 0, place: Place::new(0, sequence), at: 0 }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_queue_that_is_searched(steps in prop::collection::vec((any::<bool>(), 0..40_u8), 0..400)) {
            let mut part = Part::new(12);
            // The ring's places: a removed entry keeps its place until the ring comes round.
            let mut model: VecDeque<Option<Entry>> = VecDeque::new();
            for (sequence, (removes, number)) in (1..).zip(steps) {
                let known = model.iter().flatten().find(|entry| entry.id == id(number)).copied();
                prop_assert_eq!(part.find(id(number), hash_of(id(number))).copied(), known);
                if removes {
                    part.remove(id(number), hash_of(id(number)), hash_of);
                    model.iter_mut().filter(|place| place.is_some_and(|entry| entry.id == id(number))).for_each(|place| *place = None);
                } else if known.is_none() {
                    part.insert(entry(number, sequence), hash_of(id(number)), hash_of);
                    if model.len() == 12 {
                        model.pop_front();
                    }
                    model.push_back(Some(entry(number, sequence)));
                }
                prop_assert_eq!(part.len(), model.iter().flatten().count());
            }
            for number in 0..40 {
                let known = model.iter().flatten().find(|entry| entry.id == id(number)).copied();
                prop_assert_eq!(part.find(id(number), hash_of(id(number))).copied(), known);
            }
        }
    }
}
