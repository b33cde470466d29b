//! The dedup window in memory: the latest ids of clients, over all shards. It is divided by id into window shards, each
//! with a separate lock, so threads rarely wait for each other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::EventId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::entry::{Entry, PackedPosition};
use super::window_shard::{Hash, WindowShard};

const PARTS: usize = 64;

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    /// The id isn't in the window.
    New,
    /// It is, with the same bytes.
    Duplicate(PackedPosition),
    /// It is, with other bytes.
    OtherBytes,
}

/// The window.
pub(crate) struct DedupWindow {
    parts: Box<[Mutex<WindowShard>]>,
    /// Ids come from clients: without a seed they could choose ids that all fall into one slot of one window shard.
    seed: u64,
    start: Instant,
    /// Seconds since the start at the last tick.
    now: AtomicU32,
}

impl DedupWindow {
    /// An empty window that takes `bytes` when it is full.
    pub(crate) fn new(seed: u64, bytes: usize) -> Self {
        Self::with_entries_max(seed, (bytes / PARTS / WindowShard::ENTRY_BYTES).max(1))
    }

    pub(super) fn with_entries_max(seed: u64, entries_max: usize) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::new(WindowShard::new(entries_max))).collect();
        Self { parts, seed, start: Instant::now(), now: AtomicU32::new(0) }
    }

    /// An id's window shard, and its hash there.
    fn hash(&self, id: EventId) -> (usize, Hash) {
        let [part, hash @ .., _, _, _] = xxh3_64_with_seed(&id.0, self.seed).to_le_bytes();
        (usize::from(part) % PARTS, Hash::new(u32::from_le_bytes(hash)))
    }

    fn part(&self, id: EventId) -> (MutexGuard<'_, WindowShard>, Hash) {
        let (part, hash) = self.hash(id);
        (lock(&self.parts[part]), hash)
    }

    /// Inserts an id with its position, unless it is there already.
    pub(crate) fn insert(&self, id: EventId, content: u64, position: PackedPosition) -> LookupResult {
        let at = i32::try_from(self.now.load(Ordering::Relaxed)).unwrap_or(i32::MAX);
        let (mut part, hash) = self.part(id);
        let result = result(&part, id, hash, content);
        if result == LookupResult::New {
            part.insert(Entry { id, content, position, at }, hash, |id| self.hash(id).1);
        }
        result
    }

    /// Inserts the ids that aren't there already, oldest first. One window shard after the other is filled, so memory
    /// accesses are near each other.
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

    /// Looks an id up without inserting it.
    pub(crate) fn look_up(&self, id: EventId, content: u64) -> LookupResult {
        let (part, hash) = self.part(id);
        result(&part, id, hash, content)
    }

    /// The position of the event or the batch with an id.
    pub(crate) fn position_of(&self, id: EventId) -> Option<PackedPosition> {
        let (part, hash) = self.part(id);
        part.find(id, hash).map(|known| known.position)
    }

    /// Removes an id if it has this position: the event appended there was never written.
    pub(crate) fn remove(&self, id: EventId, position: PackedPosition) {
        let (mut part, hash) = self.part(id);
        if part.find(id, hash).is_some_and(|known| known.position == position) {
            part.remove(id, hash);
        }
    }

    /// Reads the clock. Entries are as precise as the interval of these calls.
    pub(crate) fn tick(&self) {
        self.now.store(u32::try_from(self.start.elapsed().as_secs()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// The age of the oldest entry.
    pub(crate) fn age(&self) -> Duration {
        let oldest = |part: &Mutex<WindowShard>| lock(part).oldest();
        let now = i64::from(self.now.load(Ordering::Relaxed));
        let oldest = self.parts.iter().filter_map(oldest).min().map_or(now, i64::from);
        Duration::from_secs(u64::try_from(now - oldest).unwrap_or_default())
    }

    /// How many ids it has.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).len()).sum()
    }

    /// Bytes that they take in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| lock(part).bytes()).sum()
    }
}

fn lock(part: &Mutex<WindowShard>) -> MutexGuard<'_, WindowShard> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

fn result(part: &WindowShard, id: EventId, hash: Hash, content: u64) -> LookupResult {
    match part.find(id, hash) {
        Some(known) if known.content == content => LookupResult::Duplicate(known.position),
        Some(_) => LookupResult::OtherBytes,
        None => LookupResult::New,
    }
}

#[cfg(test)]
mod tests {
    use event::Position;
    use limits::DUPLICATE_WINDOW_BYTES;

    use super::*;

    fn id(number: u64) -> EventId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        EventId(bytes)
    }

    #[test]
    fn an_id_is_known_by_its_bytes() {
        let window = DedupWindow::new(1, DUPLICATE_WINDOW_BYTES);
        let position = PackedPosition::new(3, 77);
        assert_eq!(position.position(), Position { shard: 3, sequence: 77 });
        assert_eq!(window.look_up(id(1), 5), LookupResult::New);
        assert_eq!(window.insert(id(1), 5, position), LookupResult::New);
        assert_eq!(window.insert(id(1), 5, PackedPosition::new(0, 1)), LookupResult::Duplicate(position));
        assert_eq!(window.look_up(id(1), 5), LookupResult::Duplicate(position));
        assert_eq!(window.insert(id(1), 6, PackedPosition::new(0, 1)), LookupResult::OtherBytes);
        assert_eq!((window.position_of(id(1)), window.position_of(id(2))), (Some(position), None));
        window.remove(id(1), PackedPosition::new(0, 1));
        assert_eq!(window.len(), 1);
        window.remove(id(1), position);
        assert_eq!((window.look_up(id(1), 5), window.len()), (LookupResult::New, 0));
    }

    #[test]
    fn insert_all_equals_single_inserts() {
        let (at_once, one_by_one) = (DedupWindow::with_entries_max(9, 100), DedupWindow::with_entries_max(9, 100));
        let entry = |number: u64| Entry {
            id: id(number % 9000),
            content: number,
            position: PackedPosition::new(0, number + 1),
            at: 0,
        };
        let entries: Vec<_> = (0..64 * 150).map(entry).collect();
        entries.chunks(1000).for_each(|chunk| at_once.insert_all(chunk));
        for Entry { id, content, position, .. } in &entries {
            one_by_one.insert(*id, *content, *position);
        }
        assert_eq!(at_once.len(), one_by_one.len());
        for Entry { id, content, .. } in &entries {
            assert_eq!(at_once.look_up(*id, *content), one_by_one.look_up(*id, *content));
        }
    }

    #[test]
    fn full_window_forgets_the_oldest_first() {
        let window = DedupWindow::with_entries_max(9, 100);
        let count = 64 * 150;
        for number in 0..count {
            assert_eq!(window.insert(id(number), number, PackedPosition::new(0, number + 1)), LookupResult::New);
        }
        assert_eq!(window.len(), 64 * 100);
        let is_known = |number: u64| window.look_up(id(number), number) != LookupResult::New;
        assert!((count - 1000..count).all(is_known));
        assert!(!(0..1000).any(is_known));
    }

    #[test]
    fn full_window_stays_within_its_bytes() {
        let window = DedupWindow::new(1, DUPLICATE_WINDOW_BYTES);
        let entries_max = DUPLICATE_WINDOW_BYTES / PARTS / WindowShard::ENTRY_BYTES;
        assert!(entries_max > 20_000, "{entries_max}");
        for number in 0..(entries_max * PARTS * 11 / 10) as u64 {
            window.insert(id(number), 0, PackedPosition::new(0, number + 1));
        }
        let bytes: usize = window.parts.iter().map(|part| part.lock().unwrap().bytes()).sum();
        assert!(bytes <= DUPLICATE_WINDOW_BYTES, "{bytes}");
        assert!(bytes > DUPLICATE_WINDOW_BYTES / 2, "{bytes}");
    }
}
