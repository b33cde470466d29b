//! The profile that is running: what the sampled threads read. There is one at a time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use host::CodeMapping;

use crate::ProfileError;
use crate::ring::Ring;
use crate::stacks::SampleKind;

/// Samples that wait for the collecting thread, for each CPU: six times what a tick of the collector brings.
const SLOTS_PER_CPU: usize = 64;
const SLOTS_MIN: usize = 256;
const SLOTS_MAX: usize = 2048;
/// Mappings with code: the program, and the libraries of a dynamic build.
const CODE_MAX: usize = 32;

/// It stays for the next profile: a thread may still be writing after the end.
static RING: OnceLock<Ring> = OnceLock::new();
static IS_BUSY: AtomicBool = AtomicBool::new(false);
static LAST_RUN: AtomicU32 = AtomicU32::new(0);
/// The number of the profile that samples CPU time, or 0.
static CPU: AtomicU32 = AtomicU32::new(0);
/// The number of the profile that samples allocations, or 0.
static HEAP: AtomicU32 = AtomicU32::new(0);
static CODE: [[AtomicUsize; 2]; CODE_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; CODE_MAX];
static MAIN_STACK_END: AtomicUsize = AtomicUsize::new(0);

const fn number_of(kind: SampleKind) -> &'static AtomicU32 {
    match kind {
        SampleKind::Cpu => &CPU,
        SampleKind::Heap => &HEAP,
    }
}

/// Whether allocations are sampled.
#[inline]
pub(crate) fn samples_heap() -> bool {
    HEAP.load(Ordering::Relaxed) != 0
}

/// The ring and the number of the running profile of this kind.
pub(crate) fn of(kind: SampleKind) -> Option<(&'static Ring, u32)> {
    let run = number_of(kind).load(Ordering::Acquire);
    RING.get().filter(|_| run != 0).map(|ring| (ring, run))
}

/// Whether code is at this address.
pub(crate) fn is_code(address: usize) -> bool {
    let ranges = CODE.iter().map(|range| range.each_ref().map(|end| end.load(Ordering::Relaxed)));
    ranges.take_while(|[_, end]| *end != 0).any(|[start, end]| (start..end).contains(&address))
}

/// The address after the main thread's stack.
pub(crate) fn main_stack_end() -> usize {
    MAIN_STACK_END.load(Ordering::Relaxed)
}

/// A profile that runs until it is dropped.
pub(crate) struct Run {
    pub(crate) ring: &'static Ring,
    pub(crate) number: u32,
    kind: SampleKind,
}

impl Run {
    /// # Errors
    /// Another profile is running.
    pub(crate) fn begin(kind: SampleKind, code: &[CodeMapping]) -> Result<Self, ProfileError> {
        if IS_BUSY.swap(true, Ordering::AcqRel) {
            return Err(ProfileError::Busy);
        }
        let ring = RING.get_or_init(|| {
            let cpus = available_parallelism().map_or(1, Into::into);
            Ring::new((cpus * SLOTS_PER_CPU).clamp(SLOTS_MIN, SLOTS_MAX))
        });
        ring.take_lost();
        for (range, mapping) in CODE.iter().zip(code) {
            range[0].store(mapping.start, Ordering::Relaxed);
            range[1].store(mapping.end, Ordering::Relaxed);
        }
        MAIN_STACK_END.store(host::main_stack_end().unwrap_or(0), Ordering::Relaxed);
        let number = LAST_RUN.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        number_of(kind).store(number, Ordering::Release);
        Ok(Self { ring, number, kind })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        number_of(self.kind).store(0, Ordering::Release);
        IS_BUSY.store(false, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    static ONE: Mutex<()> = Mutex::new(());

    /// Tests of a process run one after the other.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn one_profile_runs_at_a_time() {
        let _alone = alone();
        let first = Run::begin(SampleKind::Cpu, &host::code_mappings()).unwrap();
        assert!(is_code(one_profile_runs_at_a_time as fn() as usize) && !is_code(main_stack_end()));
        assert!(of(SampleKind::Cpu).is_some() && of(SampleKind::Heap).is_none());
        assert!(matches!(Run::begin(SampleKind::Heap, &[]), Err(ProfileError::Busy)));
        drop(first);
        assert!(of(SampleKind::Cpu).is_none());
        assert!(Run::begin(SampleKind::Heap, &[]).is_ok());
    }
}
