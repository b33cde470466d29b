//! Samples of allocations: of each thread one after about 512 KiB.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::ProfileError;
use crate::active::{Run, of, samples_heap};
use crate::code::Code;
use crate::cpu::collect;
use crate::machine;
use crate::stacks::{Profile, SampleKind, Stacks};

/// Bytes between two samples of a thread are from half of this to one and a half.
const SAMPLED_BYTES: u64 = 512 * 1024;

thread_local! {
    /// Bytes that this thread has allocated since its last sample, and at which it takes the next one: 0 before the first.
    static COUNTED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The allocator calls it for each allocation. Without a profile it costs the load of a number.
#[inline]
pub fn allocated(bytes: usize) {
    if samples_heap() {
        count(bytes as u64);
    }
}

/// It is in the midst of an allocation, so it allocates nothing.
#[cold]
#[inline(never)]
fn count(bytes: u64) {
    COUNTED.with(|counted| {
        let (before, next) = counted.get();
        let next = if next == 0 { interval() } else { next };
        let sum = before.saturating_add(bytes);
        if sum < next {
            counted.set((sum, next));
            return;
        }
        counted.set((0, interval()));
        if let Some((ring, run)) = of(SampleKind::Heap) {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            ring.write(run, thread, sum, machine::add_callers);
        }
    });
}

/// Bytes until the next sample. They vary: what recurs with a period would otherwise hit or miss each sample.
fn interval() -> u64 {
    static STATE: AtomicU64 = AtomicU64::new(0);
    let mut random = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    random = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    SAMPLED_BYTES / 2 + (random ^ random >> 31) % SAMPLED_BYTES
}

/// Samples the allocations of all threads for `duration`, which this call takes. It ends early when the sender of `stop` is dropped.
///
/// # Errors
/// Another profile is running.
pub fn heap(duration: Duration, stop: &Receiver<()>) -> Result<Profile, ProfileError> {
    let mappings = host::code_mappings();
    let run = Run::begin(SampleKind::Heap, &mappings)?;
    let mut stacks = Stacks::new(Code::of_process(mappings));
    let took = collect(&run, &mut stacks, duration, stop, |stacks| stacks.name_threads(host::thread_names()));
    run.ring.drain(run.number, |sample| stacks.add(sample));
    Ok(stacks.finish(SampleKind::Heap, took, run.ring.take_lost(), 0))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};
    use std::thread;

    use super::*;
    use crate::Format;
    use crate::active::tests::alone;

    /// Tests have another allocator: the function counts as one.
    #[inline(never)]
    fn eats_memory() {
        for _ in 0..64 {
            allocated(1 << 20);
        }
    }

    #[test]
    fn allocations_are_sampled_by_stack_with_all_their_bytes() {
        let _alone = alone();
        let (stop, stopped) = channel();
        let (done, is_done) = sync_channel::<()>(0);
        thread::scope(|scope| {
            let eater = thread::Builder::new().name("eater".into());
            let run = move || {
                while !samples_heap() {
                    thread::yield_now();
                }
                eats_memory();
                // The thread's name is read while it runs.
                is_done.recv().unwrap_err();
                drop(stop);
            };
            eater.spawn_scoped(scope, run).unwrap();
            scope.spawn(move || {
                thread::sleep(4 * crate::cpu::TICK);
                drop(done);
            });
            let profile = heap(Duration::from_secs(60), &stopped).unwrap();
            let folded = String::from_utf8(profile.write(Format::Folded, "")).unwrap();
            let own = folded.lines().filter(|line| line.starts_with("eater;") && line.contains("eats_memory"));
            let bytes: u64 = own.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
            assert_eq!(bytes, 64 << 20, "{folded}");
            assert!(folded.lines().all(|line| !line.contains("heap::count")), "{folded}");
        });
        assert!(!samples_heap());
        eats_memory();
    }
}
