//! Samples between the threads that take them and the thread that collects them. It is filled in a signal handler, so it neither
//! allocates nor waits: without a free slot a sample is lost, and counted.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Stack frames of a sample; the outermost ones of a deeper stack are missing.
pub(crate) const FRAMES_MAX: usize = 128;
/// Words of the stack that may be return addresses of functions without a frame pointer.
pub(crate) const CANDIDATES_MAX: usize = 24;

const FREE: u32 = 0;
const BEING_WRITTEN: u32 = 1;
const FULL: u32 = 2;

/// A fixed number of samples.
pub(crate) struct Ring {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    lost: AtomicU64,
}

struct Slot {
    state: AtomicU32,
    /// The number of the profile it belongs to.
    run: AtomicU32,
    thread: AtomicU32,
    weight: AtomicU64,
    frames: Words<FRAMES_MAX>,
    candidates: Words<CANDIDATES_MAX>,
}

struct Words<const MAX: usize> {
    count: AtomicUsize,
    words: [AtomicUsize; MAX],
}

impl<const MAX: usize> Words<MAX> {
    const fn new() -> Self {
        Self { count: AtomicUsize::new(0), words: [const { AtomicUsize::new(0) }; MAX] }
    }

    /// Whether there was room.
    fn push(&self, word: usize) -> bool {
        let count = self.count.load(Ordering::Relaxed);
        let Some(place) = self.words.get(count) else { return false };
        place.store(word, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
        true
    }

    fn copy_to(&self, words: &mut Vec<usize>) {
        words.clear();
        let used = self.words.iter().take(self.count.load(Ordering::Relaxed));
        words.extend(used.map(|word| word.load(Ordering::Relaxed)));
    }
}

/// A sample that is being written.
pub(crate) struct Writing<'a>(&'a Slot);

impl Writing<'_> {
    /// Adds the next frame, from the innermost. False: there is no room for more.
    pub(crate) fn frame(&self, address: usize) -> bool {
        self.0.frames.push(address)
    }

    /// Adds what may be the return address of a function without a frame pointer. False: there is no room for more.
    pub(crate) fn candidate(&self, address: usize) -> bool {
        self.0.candidates.push(address)
    }
}

/// A complete sample.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// The kernel's number of the thread.
    pub(crate) thread: i32,
    /// The number of ticks, or bytes.
    pub(crate) weight: u64,
    /// The instruction, and the return addresses of its callers.
    pub(crate) frames: Vec<usize>,
    pub(crate) candidates: Vec<usize>,
}

impl Ring {
    pub(crate) fn new(slots: usize) -> Self {
        let slot = |_| Slot {
            state: AtomicU32::new(FREE),
            run: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            weight: AtomicU64::new(0),
            frames: Words::new(),
            candidates: Words::new(),
        };
        Self { slots: (0..slots).map(slot).collect(), next: AtomicUsize::new(0), lost: AtomicU64::new(0) }
    }

    /// Takes a sample of profile `run`, if there is room. Any thread may call it, also in a signal handler.
    pub(crate) fn write(&self, run: u32, thread: i32, weight: u64, fill: impl FnOnce(&Writing<'_>)) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = next.checked_rem(self.slots.len()).and_then(|index| self.slots.get(index));
        let free = slot.filter(|slot| {
            let begun = slot.state.compare_exchange(FREE, BEING_WRITTEN, Ordering::Acquire, Ordering::Relaxed);
            begun.is_ok()
        });
        let Some(slot) = free else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        slot.run.store(run, Ordering::Relaxed);
        slot.thread.store(thread.cast_unsigned(), Ordering::Relaxed);
        slot.weight.store(weight, Ordering::Relaxed);
        slot.frames.count.store(0, Ordering::Relaxed);
        slot.candidates.count.store(0, Ordering::Relaxed);
        fill(&Writing(slot));
        slot.state.store(FULL, Ordering::Release);
    }

    /// Takes out all complete samples, and drops those of other profiles. Only one thread may call it.
    pub(crate) fn drain(&self, run: u32, mut take: impl FnMut(&Sample)) {
        let mut sample = Sample::default();
        for slot in &self.slots {
            if slot.state.load(Ordering::Acquire) != FULL {
                continue;
            }
            if slot.run.load(Ordering::Relaxed) == run {
                sample.thread = slot.thread.load(Ordering::Relaxed).cast_signed();
                sample.weight = slot.weight.load(Ordering::Relaxed);
                slot.frames.copy_to(&mut sample.frames);
                slot.candidates.copy_to(&mut sample.candidates);
                take(&sample);
            }
            slot.state.store(FREE, Ordering::Release);
        }
    }

    /// The samples that were lost since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_arrive_once_and_without_room_are_counted() {
        let ring = Ring::new(2);
        for number in 0..3_usize {
            ring.write(7, 42, 5, |sample| {
                sample.frame(100 + number);
                sample.candidate(9);
            });
        }
        let mut frames = Vec::new();
        ring.drain(7, |sample| {
            assert_eq!((sample.thread, sample.weight, &sample.candidates[..]), (42, 5, &[9][..]));
            frames.extend(&sample.frames);
        });
        assert_eq!((frames, ring.take_lost(), ring.take_lost()), (vec![100, 101], 1, 0));
        ring.drain(7, |_| panic!("it was taken"));
        ring.write(6, 42, 5, |_| {});
        ring.drain(7, |_| panic!("it belongs to an earlier profile"));
        ring.write(7, 1, 1, |sample| {
            let count = (0..).take_while(|address| sample.frame(*address)).count();
            assert_eq!(count, FRAMES_MAX);
        });
        ring.drain(7, |sample| assert_eq!(sample.frames.len(), FRAMES_MAX));
    }
}
