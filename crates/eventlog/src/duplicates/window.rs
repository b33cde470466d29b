//! The window in memory: the ids that clients gave last, over all shards. It is divided by id into parts, each with a lock
//! of its own, so that shards rarely wait for each other.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::{EventId, Position};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::part::{Hash, Part};

const PARTS: usize = 64;

/// Where an entry's event stands, in one word, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(NonZeroU64);

const SEQUENCE_BITS: u32 = 48;

impl Place {
    /// # Panics
    /// There is no such sequence: they begin at 1 and have 48 bits, which a million events a second take nine years to
    /// use up.
    pub(crate) const fn new(shard: u16, sequence: u64) -> Self {
        assert!(sequence > 0 && sequence >> SEQUENCE_BITS == 0, "a sequence has 48 bits and isn't 0");
        Self(NonZeroU64::new(((shard as u64) << SEQUENCE_BITS) | sequence).expect("its sequence isn't 0"))
    }

    pub(crate) const fn position(self) -> Position {
        let [.., high, low] = (self.0.get() >> SEQUENCE_BITS).to_be_bytes();
        Position { shard: u16::from_be_bytes([high, low]), sequence: self.0.get() & ((1 << SEQUENCE_BITS) - 1) }
    }
}

/// What is remembered of an event or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: EventId,
    pub(crate) content: u64,
    pub(crate) place: Place,
    /// Seconds on the window's clock.
    pub(crate) at: i32,
}

/// What an id was met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: it is remembered now.
    Never,
    /// With the same bytes.
    Same(Place),
    /// With other bytes.
    Other,
}

/// The window.
pub(crate) struct Window {
    parts: Box<[Mutex<Part>]>,
    /// Ids come from clients: without it they could choose such that all fall into one part and one place of it.
    seed: u64,
    start: Instant,
    /// Seconds since the start when the clock was looked at last.
    now: AtomicU32,
}

impl Window {
    /// An empty one that takes so many bytes when it is full.
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        Self::with_entries_max(seed, (bytes / PARTS / Part::ENTRY_BYTES).max(1))
    }

    pub(super) fn with_entries_max(seed: u64, entries_max: usize) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::new(Part::new(entries_max))).collect();
        Self { parts, seed, start: Instant::now(), now: AtomicU32::new(0) }
    }

    /// An id's part, and its hash there.
    fn hash(&self, id: EventId) -> (usize, Hash) {
        let [part, hash @ .., _, _, _] = xxh3_64_with_seed(&id.0, self.seed).to_le_bytes();
        (usize::from(part) % PARTS, Hash::new(u32::from_le_bytes(hash)))
    }

    fn part(&self, id: EventId) -> (MutexGuard<'_, Part>, Hash) {
        let (part, hash) = self.hash(id);
        (lock(&self.parts[part]), hash)
    }

    /// Remembers an id with its place, unless it is known already.
    pub(crate) fn meet(&self, id: EventId, content: u64, place: Place) -> Seen {
        let at = i32::try_from(self.now.load(Ordering::Relaxed)).unwrap_or(i32::MAX);
        let (mut part, hash) = self.part(id);
        let seen = seen(&part, id, hash, content);
        if seen == Seen::Never {
            part.insert(Entry { id, content, place, at }, hash, |id| self.hash(id).1);
        }
        seen
    }

    /// Remembers many that aren't known already, oldest first. They are taken part by part: what lies in one part's memory
    /// is then near, where for each id alone it would be far.
    pub(super) fn insert_all(&self, entries: &[Entry]) {
        let mut by_part = [const { Vec::new() }; PARTS];
        for entry in entries {
            let (part, hash) = self.hash(entry.id);
            by_part[part].push((hash, *entry));
        }
        for (part, entries) in self.parts.iter().zip(by_part) {
            let mut part = lock(part);
            for (hash, entry) in entries {
                if part.find(entry.id, hash).is_none() {
                    part.insert(entry, hash, |id| self.hash(id).1);
                }
            }
        }
    }

    /// What an id was met with; it isn't remembered.
    pub(crate) fn look_up(&self, id: EventId, content: u64) -> Seen {
        let (part, hash) = self.part(id);
        seen(&part, id, hash, content)
    }

    /// Where the event or the batch of an id stands.
    pub(crate) fn place_of(&self, id: EventId) -> Option<Place> {
        let (part, hash) = self.part(id);
        part.find(id, hash).map(|known| known.place)
    }

    /// Forgets an id, if it stands at this place: what was appended there was never written.
    pub(crate) fn forget(&self, id: EventId, place: Place) {
        let (mut part, hash) = self.part(id);
        if part.find(id, hash).is_some_and(|known| known.place == place) {
            part.remove(id, hash);
        }
    }

    /// Looks at the clock, which needs to be no more exact than it is asked for.
    pub(crate) fn tick(&self) {
        self.now.store(u32::try_from(self.start.elapsed().as_secs()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// How far back it reaches: the age of the oldest entry.
    pub(crate) fn age(&self) -> Duration {
        let oldest = |part: &Mutex<Part>| lock(part).oldest();
        let now = i64::from(self.now.load(Ordering::Relaxed));
        let oldest = self.parts.iter().filter_map(oldest).min().map_or(now, i64::from);
        Duration::from_secs(u64::try_from(now - oldest).unwrap_or_default())
    }

    /// How many ids it holds.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).len()).sum()
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seen(part: &Part, id: EventId, hash: Hash, content: u64) -> Seen {
    match part.find(id, hash) {
        Some(known) if known.content == content => Seen::Same(known.place),
        Some(_) => Seen::Other,
        None => Seen::Never,
    }
}

#[cfg(test)]
mod tests {
    use event::limits::DUPLICATE_WINDOW_BYTES;

    use super::*;

    fn id(number: u64) -> EventId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        EventId(bytes)
    }

    #[test]
    fn an_id_is_known_by_its_bytes() {
        let window = Window::new(1, DUPLICATE_WINDOW_BYTES);
        let place = Place::new(3, 77);
        assert_eq!(place.position(), Position { shard: 3, sequence: 77 });
        assert_eq!(window.look_up(id(1), 5), Seen::Never);
        assert_eq!(window.meet(id(1), 5, place), Seen::Never);
        assert_eq!(window.meet(id(1), 5, Place::new(0, 1)), Seen::Same(place));
        assert_eq!(window.look_up(id(1), 5), Seen::Same(place));
        assert_eq!(window.meet(id(1), 6, Place::new(0, 1)), Seen::Other);
        assert_eq!((window.place_of(id(1)), window.place_of(id(2))), (Some(place), None));
        window.forget(id(1), Place::new(0, 1));
        assert_eq!(window.len(), 1);
        window.forget(id(1), place);
        assert_eq!((window.look_up(id(1), 5), window.len()), (Seen::Never, 0));
    }

    #[test]
    fn many_at_once_are_what_they_would_be_one_by_one() {
        let (at_once, one_by_one) = (Window::with_entries_max(9, 100), Window::with_entries_max(9, 100));
        let entry =
            |number: u64| Entry { id: id(number % 9000), content: number, place: Place::new(0, number + 1), at: 0 };
        let entries: Vec<_> = (0..64 * 150).map(entry).collect();
        entries.chunks(1000).for_each(|chunk| at_once.insert_all(chunk));
        for Entry { id, content, place, .. } in &entries {
            one_by_one.meet(*id, *content, *place);
        }
        assert_eq!(at_once.len(), one_by_one.len());
        for Entry { id, content, .. } in &entries {
            assert_eq!(at_once.look_up(*id, *content), one_by_one.look_up(*id, *content));
        }
    }

    #[test]
    fn full_it_has_its_size_and_forgets_the_oldest_first() {
        let window = Window::with_entries_max(9, 100);
        let count = 64 * 150;
        for number in 0..count {
            assert_eq!(window.meet(id(number), number, Place::new(0, number + 1)), Seen::Never);
        }
        assert_eq!(window.len(), 64 * 100);
        let is_known = |number: u64| window.look_up(id(number), number) != Seen::Never;
        assert!((count - 1000..count).all(is_known));
        assert!(!(0..1000).any(is_known));
    }

    #[test]
    fn the_bytes_of_a_full_window_are_within_the_limit() {
        let window = Window::new(1, DUPLICATE_WINDOW_BYTES);
        let entries_max = DUPLICATE_WINDOW_BYTES / PARTS / Part::ENTRY_BYTES;
        assert!(entries_max > 20_000, "{entries_max}");
        for number in 0..(entries_max * PARTS * 11 / 10) as u64 {
            window.meet(id(number), 0, Place::new(0, number + 1));
        }
        let bytes: usize = window.parts.iter().map(|part| part.lock().unwrap().bytes()).sum();
        assert!(bytes <= DUPLICATE_WINDOW_BYTES, "{bytes}");
        assert!(bytes > DUPLICATE_WINDOW_BYTES / 2, "{bytes}");
    }
}
