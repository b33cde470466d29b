//! Live samples of events, for an operator who watches them pass. Without a tap an event costs one relaxed load.
//!
//! A tap at a point gets copies of some events that pass there: as many as it is allowed, and of each the first bytes. The thread that
//! offers an event never waits, and never wakes another thread.

mod seen;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

pub use seen::{Passing, Seen};

/// Taps at a time.
pub const TAPS_MAX: usize = 4;
/// Bytes of a payload that are copied.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024;
/// Copies that wait for a tap. Further events are counted, and not copied.
const WAITING_MAX: usize = 256;

/// Where an event passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It was received, and its type is known; before the steps of its type.
    Received,
    /// It is durable in the journal.
    Accepted,
    /// It is rejected.
    Refused,
    /// A store has it.
    Stored,
    /// It became a dead letter.
    Dead,
}

impl Point {
    /// All of them, in the order in which an event meets them.
    pub const ALL: [Self; 5] = [Self::Received, Self::Accepted, Self::Refused, Self::Stored, Self::Dead];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Stored => "stored",
            Self::Dead => "dead",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which events a tap wants. `None` is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapFilter {
    /// Where they pass.
    pub at: Point,
    /// Their type.
    pub type_name: Option<String>,
    /// Their source.
    pub source: Option<String>,
    /// The sink that stores or rejects them.
    pub sink: Option<String>,
}

impl TapFilter {
    /// Whether it wants such an event. An event without a sink is of none.
    #[must_use]
    pub fn takes(&self, type_name: &str, source: &str, sink: &str) -> bool {
        let is_wanted = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is_wanted(&self.type_name, type_name) && is_wanted(&self.source, source) && is_wanted(&self.sink, sink)
    }
}

/// The taps of a process.
#[derive(Debug)]
pub struct Taps {
    /// A bit for each point that has taps.
    wanted: AtomicU8,
    taps: RwLock<Vec<Arc<Tap>>>,
    have_ended: AtomicBool,
}

/// A tap, as the threads see it that offer events.
#[derive(Debug)]
pub struct Tap {
    filter: TapFilter,
    copies: SyncSender<Seen>,
    /// Events that may be copied until the next [`Tap::allow`]; negative if more came.
    left: AtomicI64,
    passed: AtomicU64,
}

impl Taps {
    /// Those of this process, without any. They last as long as the process, so those who offer events count no references.
    #[must_use]
    pub fn new() -> &'static Self {
        Box::leak(Box::new(Self::without_taps(false)))
    }

    const fn without_taps(have_ended: bool) -> Self {
        Self { wanted: AtomicU8::new(0), taps: RwLock::new(Vec::new()), have_ended: AtomicBool::new(have_ended) }
    }

    /// Taps that can't be opened.
    #[must_use]
    pub fn closed() -> &'static Self {
        static CLOSED: Taps = Taps::without_taps(true);
        &CLOSED
    }

    /// Whether there is a tap at this point.
    #[inline]
    #[must_use]
    pub fn want(&self, at: Point) -> bool {
        self.wanted.load(Ordering::Relaxed) & at.bit() != 0
    }

    /// Offers an event that passes. Call it only if [`Taps::want`]. It never waits for a tap.
    pub fn offer(&self, at: Point, passing: &Passing<'_>) {
        let taps = self.taps.read().unwrap_or_else(PoisonError::into_inner);
        taps.iter().filter(|tap| tap.filter.at == at).for_each(|tap| tap.offer(passing));
    }

    /// Opens a tap, which ends when the returned value is dropped. `None` if there are too many, or the process stops.
    #[must_use]
    pub fn open(&'static self, filter: TapFilter) -> Option<OpenTap> {
        let (copies, seen) = sync_channel(WAITING_MAX);
        let tap = Arc::new(Tap { filter, copies, left: AtomicI64::new(0), passed: AtomicU64::new(0) });
        let mut taps = self.write();
        if taps.len() >= TAPS_MAX || self.have_ended() {
            return None;
        }
        taps.push(tap.clone());
        self.publish(&taps);
        Some(OpenTap { taps: self, tap, seen })
    }

    /// Ends all taps, and says whether there are any: each sees [`OpenTap::has_ended`].
    pub fn end(&self) -> bool {
        self.have_ended.store(true, Ordering::Relaxed);
        !self.write().is_empty()
    }

    fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::Relaxed)
    }

    fn publish(&self, taps: &[Arc<Tap>]) {
        self.wanted.store(taps.iter().fold(0, |bits, tap| bits | tap.filter.at.bit()), Ordering::Relaxed);
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Arc<Tap>>> {
        self.taps.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap {
    fn offer(&self, passing: &Passing<'_>) {
        if !self.filter.takes(passing.type_name, passing.source, passing.sink) {
            return;
        }
        self.passed.fetch_add(1, Ordering::Relaxed);
        if self.left.load(Ordering::Relaxed) > 0 && self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            // If it doesn't fit, it has passed and isn't looked at.
            let _ = self.copies.try_send(Seen::of(passing));
        }
    }
}

/// A tap of a reader.
#[derive(Debug)]
pub struct OpenTap {
    taps: &'static Taps,
    tap: Arc<Tap>,
    seen: Receiver<Seen>,
}

impl OpenTap {
    /// What it wants.
    #[must_use]
    pub fn filter(&self) -> &TapFilter {
        &self.tap.filter
    }

    /// Lets it copy up to `events` from now on.
    pub fn allow(&self, events: i64) {
        self.tap.left.store(events, Ordering::Relaxed);
    }

    /// The next copy, if one waits.
    #[must_use]
    pub fn take(&self) -> Option<Seen> {
        self.seen.try_recv().ok()
    }

    /// How many events that it wants have passed since the last call.
    #[must_use]
    pub fn take_passed(&self) -> u64 {
        self.tap.passed.swap(0, Ordering::Relaxed)
    }

    /// Whether the process stops.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.taps.have_ended()
    }
}

impl Drop for OpenTap {
    fn drop(&mut self) {
        let mut taps = self.taps.write();
        taps.retain(|tap| !Arc::ptr_eq(tap, &self.tap));
        self.taps.publish(&taps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(at: Point, type_name: Option<&str>) -> TapFilter {
        TapFilter { at, type_name: type_name.map(str::to_owned), source: None, sink: None }
    }

    fn passing<'a>(type_name: &'a str, payload: &'a [u8]) -> Passing<'a> {
        Passing { type_name, bytes: payload.len(), payload: Some(payload), ..Passing::default() }
    }

    #[test]
    fn tap_copies_wanted_events_within_its_allowance() {
        let taps = Taps::new();
        assert!(!Point::ALL.into_iter().any(|at| taps.want(at)));
        let tap = taps.open(filter(Point::Stored, Some("a"))).unwrap();
        assert_eq!(Point::ALL.map(|at| taps.want(at)), [false, false, false, true, false]);
        tap.allow(3);
        for _ in 0..5 {
            taps.offer(Point::Stored, &passing("a", b"1"));
            taps.offer(Point::Stored, &passing("b", b"2"));
            taps.offer(Point::Dead, &passing("a", b"3"));
        }
        let seen: Vec<Seen> = std::iter::from_fn(|| tap.take()).collect();
        assert!(seen.len() == 3 && seen.iter().all(|seen| seen.passing().payload == Some(b"1")), "{seen:?}");
        assert_eq!([tap.take_passed(), tap.take_passed()], [5, 0]);
        drop(tap);
        assert!(!taps.want(Point::Stored));
    }

    #[test]
    fn copies_are_bounded() {
        let taps = Taps::new();
        let tap = taps.open(filter(Point::Received, None)).unwrap();
        tap.allow(10_000);
        let large = vec![b'x'; 100_000];
        (0..1_000).for_each(|_| taps.offer(Point::Received, &passing("a", &large)));
        let seen: Vec<Seen> = std::iter::from_fn(|| tap.take()).collect();
        assert_eq!((seen.len(), tap.take_passed()), (WAITING_MAX, 1_000));
        let first = seen[0].passing();
        assert_eq!((first.payload.unwrap().len(), first.bytes, first.is_whole()), (PAYLOAD_BYTES_MAX, 100_000, false));
    }

    #[test]
    fn taps_are_limited_and_end_with_the_process() {
        let taps = Taps::new();
        let open: Vec<_> = (0..TAPS_MAX).map(|_| taps.open(filter(Point::Dead, None)).unwrap()).collect();
        assert!(taps.open(filter(Point::Dead, None)).is_none());
        drop(open);
        let tap = taps.open(filter(Point::Dead, None)).unwrap();
        assert!(taps.end());
        assert!(tap.has_ended() && taps.open(filter(Point::Dead, None)).is_none());
        assert!(Taps::closed().open(filter(Point::Dead, None)).is_none());
    }
}
