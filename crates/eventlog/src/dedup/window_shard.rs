//! One shard of the window: entries in order of arrival, and a hash table by id. The oldest entry makes room for the newest.
//!
//! The table has open addressing with linear probing. A removal shifts later entries back (Knuth, TAOCP 3, 6.4,
//! algorithm R), so it leaves no tombstone. Each slot has the hash next to the entry's number: probing and shifting
//! read no other entries, which are far apart in memory.

use event::EventId;

use super::entry::Entry;

const HASH_BITS: u32 = 17;
const NUMBER_BITS: u32 = u32::BITS - HASH_BITS;
/// Entries that a part may have: their numbers begin at 1.
const ENTRIES_MAX: usize = (1 << NUMBER_BITS) - 1;

/// The hash of an id in its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(u32);

impl Hash {
    /// The lowest 17 bits.
    pub(super) const fn new(bits: u32) -> Self {
        Self(bits & ((1 << HASH_BITS) - 1))
    }
}

/// A slot of the index: an entry and the hash of its id, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    const EMPTY: Self = Self(0);

    fn new(at: usize, hash: Hash) -> Self {
        let number = u32::try_from(at + 1).expect("a part has at most ENTRIES_MAX entries");
        Self((hash.0 << NUMBER_BITS) | number)
    }

    /// The entry's index among the entries.
    const fn at(self) -> usize {
        (self.0 as usize & ENTRIES_MAX) - 1
    }

    const fn hash(self) -> Hash {
        Hash(self.0 >> NUMBER_BITS)
    }
}

#[derive(Debug)]
pub(super) struct WindowShard {
    /// A ring when it is full.
    entries: Vec<Option<Entry>>,
    entries_max: usize,
    /// The index of the next entry in a full ring.
    next: usize,
    index: Vec<Slot>,
    len: usize,
}

const INDEX_MIN: usize = 16;

impl WindowShard {
    /// Bytes that an entry takes at most, with its share of the index, which is at least three eighths full when the part
    /// is full.
    pub(super) const ENTRY_BYTES: usize = size_of::<Option<Entry>>() + 3 * size_of::<Slot>();

    /// # Panics
    /// It may have more entries than a slot can number.
    pub(super) const fn new(entries_max: usize) -> Self {
        assert!(entries_max <= ENTRIES_MAX, "a part has at most ENTRIES_MAX entries");
        Self { entries: Vec::new(), entries_max, next: 0, index: Vec::new(), len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes that it takes in memory.
    pub(super) const fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Option<Entry>>() + self.index.capacity() * size_of::<Slot>()
    }

    /// When the oldest entry was inserted.
    pub(super) fn oldest(&self) -> Option<i32> {
        let (newer, older) = self.entries.split_at(self.next);
        older.iter().chain(newer).flatten().next().map(|entry| entry.at)
    }

    pub(super) fn find(&self, id: EventId, hash: Hash) -> Option<&Entry> {
        self.place_of(id, hash).and_then(|place| self.entries[self.index[place].at()].as_ref())
    }

    /// The slot of an id in the index.
    fn place_of(&self, id: EventId, hash: Hash) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut place = self.home(hash);
        while self.index[place] != Slot::EMPTY {
            let slot = self.index[place];
            if slot.hash() == hash && self.entries[slot.at()].as_ref().is_some_and(|entry| entry.id == id) {
                return Some(place);
            }
            place = self.behind(place);
        }
        None
    }

    const fn home(&self, hash: Hash) -> usize {
        hash.0 as usize & (self.index.len() - 1)
    }

    const fn behind(&self, place: usize) -> usize {
        (place + 1) & (self.index.len() - 1)
    }

    /// Adds an entry whose id isn't there. `hash_of` returns the hash of the oldest entry if it must be removed.
    pub(super) fn insert(&mut self, entry: Entry, hash: Hash, hash_of: impl Fn(EventId) -> Hash) {
        let at = if self.entries.len() < self.entries_max {
            self.make_room();
            self.entries.push(None);
            self.entries.len() - 1
        } else {
            let at = self.next;
            self.next = (at + 1) % self.entries_max;
            if let Some(oldest) = self.entries[at] {
                self.remove(oldest.id, hash_of(oldest.id));
            }
            at
        };
        if 4 * (self.len + 1) > 3 * self.index.len() {
            self.grow_index();
        }
        self.entries[at] = Some(entry);
        self.len += 1;
        self.put(Slot::new(at, hash));
    }

    /// Doubles, but never uses more than is needed in the end.
    fn make_room(&mut self) {
        if self.entries.len() == self.entries.capacity() {
            let more = self.entries.len().max(INDEX_MIN);
            self.entries.reserve_exact(more.min(self.entries_max - self.entries.len()));
        }
    }

    fn grow_index(&mut self) {
        let larger = vec![Slot::EMPTY; (self.index.len() * 2).max(INDEX_MIN)];
        let smaller = std::mem::replace(&mut self.index, larger);
        smaller.into_iter().filter(|slot| *slot != Slot::EMPTY).for_each(|slot| self.put(slot));
    }

    fn put(&mut self, slot: Slot) {
        let mut place = self.home(slot.hash());
        while self.index[place] != Slot::EMPTY {
            place = self.behind(place);
        }
        self.index[place] = slot;
    }

    /// Removes an id. Its slot among the entries is free when the ring reaches it.
    pub(super) fn remove(&mut self, id: EventId, hash: Hash) {
        let Some(mut empty) = self.place_of(id, hash) else { return };
        self.entries[self.index[empty].at()] = None;
        self.len -= 1;
        self.index[empty] = Slot::EMPTY;
        let mut place = self.behind(empty);
        while self.index[place] != Slot::EMPTY {
            if self.may_move(place, empty) {
                self.index[empty] = std::mem::replace(&mut self.index[place], Slot::EMPTY);
                empty = place;
            }
            place = self.behind(place);
        }
    }

    /// Whether the entry of a slot may move to the empty slot before it: its home isn't between the two.
    fn may_move(&self, place: usize, empty: usize) -> bool {
        let mask = self.index.len() - 1;
        let from_home = place.wrapping_sub(self.home(self.index[place].hash())) & mask;
        from_home >= place.wrapping_sub(empty) & mask
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::entry::PackedPosition;
    use super::*;

    fn id(number: u8) -> EventId {
        EventId([number; 16])
    }

    /// Few enough that most ids have the same home.
    fn hash_of(id: EventId) -> Hash {
        Hash::new(u32::from(id.0[0] % 5))
    }

    fn entry(number: u8, sequence: u64) -> Entry {
        Entry { id: id(number), content: 0, position: PackedPosition::new(0, sequence), at: 0 }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_queue_that_is_searched(steps in prop::collection::vec((any::<bool>(), 0..40_u8), 0..400)) {
            let mut part = WindowShard::new(12);
            // The ring's places: a removed entry keeps its place until the ring comes round.
            let mut model: VecDeque<Option<Entry>> = VecDeque::new();
            for (sequence, (removes, number)) in (1..).zip(steps) {
                let known = model.iter().flatten().find(|entry| entry.id == id(number)).copied();
                prop_assert_eq!(part.find(id(number), hash_of(id(number))).copied(), known);
                if removes {
                    part.remove(id(number), hash_of(id(number)));
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
