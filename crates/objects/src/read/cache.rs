//! The objects of all sinks in memory: the most recently used ones, up to a total size. Evicted bytes count until their
//! last reader has freed them. An object without room isn't read into memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use event::object::FoundObject;
use limits::OBJECT_CACHED_BYTES_MAX;

/// The approximate size of an entry without its bytes and its texts.
const ENTRY_BYTES: u64 = 512;
/// An object larger than this part of the cache would evict too many others.
const PART: u64 = 4;

/// An object, and when it was requested from its store.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) found: Arc<FoundObject>,
    pub(super) asked: Instant,
}

/// The cache of a process. Cheap to clone: the clones share it.
#[derive(Clone)]
pub struct ObjectCache(Arc<Shared>);

struct Shared {
    room: Arc<MemoryBudget>,
    kept: Mutex<Kept>,
    sinks: AtomicU64,
}

/// The maximum and the current number of bytes.
struct MemoryBudget {
    bytes_max: AtomicU64,
    bytes: AtomicU64,
}

/// A part of the budget, until this is dropped.
struct Taken {
    room: Arc<MemoryBudget>,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl MemoryBudget {
    fn take(self: &Arc<Self>, bytes: u64) -> Option<Taken> {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        let with = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).ok()?;
        Some(Taken { room: self.clone(), bytes })
    }

    fn is_overfull(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max.load(Ordering::Relaxed)
    }
}

/// Room for an object's bytes, which aren't read yet.
pub struct CacheSlot {
    taken: Taken,
}

impl CacheSlot {
    /// Adds the bytes, at most as many as were reserved. They count until their last reader has freed them.
    pub fn filled(self, bytes: Vec<u8>) -> Bytes {
        debug_assert!(bytes.capacity() as u64 <= self.taken.bytes, "no more than were reserved");
        Bytes::from_owner(Counted { bytes, _taken: self.taken })
    }
}

struct Counted {
    bytes: Vec<u8>,
    _taken: Taken,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The number that identifies a sink in the cache.
pub(super) type SinkNumber = u64;

/// The entries, by sink and name.
#[derive(Default)]
struct Kept {
    sinks: HashMap<SinkNumber, HashMap<Arc<str>, Slot>>,
    /// Names by their last use, counted in uses.
    order: BTreeMap<u64, (SinkNumber, Arc<str>)>,
    uses: u64,
}

struct Slot {
    entry: Entry,
    used: u64,
    /// The size of the slot without the object's bytes.
    _taken: Taken,
}

impl Kept {
    fn get(&mut self, sink: SinkNumber, name: &str) -> Option<Entry> {
        let slot = self.sinks.get_mut(&sink)?.get_mut(name)?;
        let key = self.order.remove(&slot.used)?;
        self.uses += 1;
        slot.used = self.uses;
        self.order.insert(self.uses, key);
        Some(slot.entry.clone())
    }

    fn put(&mut self, sink: SinkNumber, name: &Arc<str>, entry: Entry, taken: Taken) {
        self.remove(sink, name);
        self.uses += 1;
        self.order.insert(self.uses, (sink, name.clone()));
        let slot = Slot { entry, used: self.uses, _taken: taken };
        self.sinks.entry(sink).or_default().insert(name.clone(), slot);
    }

    fn remove(&mut self, sink: SinkNumber, name: &str) {
        if let Some(slot) = self.sinks.get_mut(&sink).and_then(|names| names.remove(name)) {
            self.order.remove(&slot.used);
        }
    }

    /// Evicts the least recently used entry, if there is one.
    fn drop_oldest(&mut self) -> bool {
        let Some((_, (sink, name))) = self.order.pop_first() else { return false };
        if let Some(names) = self.sinks.get_mut(&sink) {
            names.remove(&name);
        }
        true
    }

    fn forget(&mut self, sink: SinkNumber) {
        for slot in self.sinks.remove(&sink).unwrap_or_default().values() {
            self.order.remove(&slot.used);
        }
    }
}

impl ObjectCache {
    /// An empty cache of this size.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        let room = Arc::new(MemoryBudget { bytes_max: AtomicU64::new(bytes_max), bytes: AtomicU64::new(0) });
        Self(Arc::new(Shared { room, kept: Mutex::default(), sinks: AtomicU64::new(0) }))
    }

    /// Changes the size of the cache.
    pub fn resize(&self, bytes_max: u64) {
        self.0.room.bytes_max.store(bytes_max, Ordering::Relaxed);
        while self.0.room.is_overfull() && self.kept().drop_oldest() {}
    }

    /// Bytes in memory, with the overhead of entries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.room.bytes.load(Ordering::Relaxed)
    }

    /// The size of the cache.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.0.room.bytes_max.load(Ordering::Relaxed)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room, and evicts the least recently used entries if necessary. There may still be too little, because
    /// others are reading evicted bytes.
    fn take(&self, bytes: u64) -> Option<Taken> {
        loop {
            let taken = self.0.room.take(bytes);
            if taken.is_some() || !self.kept().drop_oldest() {
                return taken;
            }
        }
    }

    /// Room for an object of this size, if it may be in memory as a whole.
    pub fn place(&self, bytes: u64) -> Option<CacheSlot> {
        let bytes_max = self.0.room.bytes_max.load(Ordering::Relaxed);
        let taken = (bytes <= OBJECT_CACHED_BYTES_MAX.min(bytes_max / PART)).then(|| self.take(bytes))?;
        taken.map(|taken| CacheSlot { taken })
    }

    /// A new number for a sink.
    pub(super) fn add_sink(&self) -> SinkNumber {
        self.0.sinks.fetch_add(1, Ordering::Relaxed)
    }

    /// The entry of a name. This counts as a use.
    pub(super) fn get(&self, sink: SinkNumber, name: &str) -> Option<Entry> {
        self.kept().get(sink, name)
    }

    /// Adds an object, and replaces the entry of its name, if there is room.
    pub(super) fn put(&self, sink: SinkNumber, name: &Arc<str>, entry: Entry) {
        let FoundObject { etag, content_type, .. } = &*entry.found;
        let overhead = (name.len() + etag.len() + content_type.len()) as u64 + ENTRY_BYTES;
        match self.take(overhead) {
            Some(taken) => self.kept().put(sink, name, entry, taken),
            None => self.remove(sink, name),
        }
    }

    pub(super) fn remove(&self, sink: SinkNumber, name: &str) {
        self.kept().remove(sink, name);
    }

    /// Removes all entries of a sink.
    pub(super) fn forget(&self, sink: SinkNumber) {
        self.kept().forget(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry whose content has this many bytes, for which there is room.
    fn entry(cache: &ObjectCache, bytes: usize) -> Entry {
        let content = cache.place(bytes as u64).map(|place| place.filled(vec![7; bytes]));
        assert!(content.is_some());
        let found = FoundObject { etag: "\"a\"".into(), content_type: "a/b".into(), bytes: bytes as u64, content };
        Entry { found: found.into(), asked: Instant::now() }
    }

    /// The size of an entry in these tests without its bytes.
    const OVERHEAD: u64 = ENTRY_BYTES + 1 + 3 + 3;

    fn names() -> [Arc<str>; 4] {
        ["a", "b", "c", "d"].map(Into::into)
    }

    fn kept(cache: &ObjectCache, sink: SinkNumber) -> [bool; 4] {
        names().map(|name| cache.get(sink, &name).is_some())
    }

    #[test]
    fn least_recently_used_objects_are_evicted() {
        let cache = ObjectCache::new(3 * (OVERHEAD + 100) + 50);
        let (sink, names) = (cache.add_sink(), names());
        names[..3].iter().for_each(|name| cache.put(sink, name, entry(&cache, 100)));
        assert_eq!(cache.bytes(), 3 * (OVERHEAD + 100));
        assert!(cache.get(sink, "a").is_some());
        cache.put(sink, &names[3], entry(&cache, 100));
        assert_eq!(kept(&cache, sink), [true, false, true, true]);
        cache.put(sink, &names[0], entry(&cache, 151));
        assert_eq!(kept(&cache, sink), [true, false, false, true], "it needed the room of two");
        assert_eq!(cache.bytes(), 2 * OVERHEAD + 251);
        assert!(cache.place(cache.0.room.bytes_max.load(Ordering::Relaxed) / PART + 1).is_none());
        assert_eq!(kept(&cache, sink), [true, false, false, true], "nothing was evicted for it");
        names.iter().for_each(|name| cache.remove(sink, name));
        let kept = cache.kept();
        assert_eq!((cache.bytes(), kept.order.len(), kept.sinks[&sink].len()), (0, 0, 0));
    }

    #[test]
    fn evicted_object_counts_until_its_last_reader_ends() {
        let cache = ObjectCache::new(4_999);
        let (sink, names) = (cache.add_sink(), names());
        cache.put(sink, &names[0], entry(&cache, 1000));
        let reading = cache.get(sink, "a").unwrap().found.content.clone().unwrap().slice(1..2);
        cache.remove(sink, "a");
        assert_eq!(cache.bytes(), 1000);
        let others: Vec<_> = std::iter::from_fn(|| cache.place(1000)).collect();
        assert_eq!((others.len(), cache.bytes()), (3, 4_000));
        drop(reading);
        assert!(cache.place(1000).is_some());
        drop(others);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn removed_sinks_and_smaller_caches_free_memory() {
        let cache = ObjectCache::new(1 << 20);
        let (one, other) = (cache.add_sink(), cache.add_sink());
        for (sink, bytes) in [(one, 10), (other, 20)] {
            names().iter().for_each(|name| cache.put(sink, name, entry(&cache, bytes)));
        }
        cache.forget(one);
        assert_eq!((kept(&cache, one), kept(&cache, other)), ([false; 4], [true; 4]));
        assert_eq!(cache.bytes(), 4 * (OVERHEAD + 20));
        cache.resize(2 * (OVERHEAD + 20));
        assert_eq!(kept(&cache, other), [false, false, true, true]);
        cache.resize(0);
        assert_eq!((kept(&cache, other), cache.bytes()), ([false; 4], 0));
        assert!(cache.place(1).is_none());
    }
}
