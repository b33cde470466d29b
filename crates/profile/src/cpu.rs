//! Samples of CPU time: a timer interrupts each thread about every hundredth of a second that the thread runs.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::ProfileError;
use crate::active::Run;
use crate::code::Code;
use crate::machine::{self, ThreadTimer};
use crate::stacks::{Profile, SampleKind, Stacks};

/// How often samples are collected, and new threads looked for.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Samples all threads but the calling one for `duration`, which this call takes. It ends early when the sender of `stop` is dropped.
///
/// # Errors
/// Another profile is running, or the kernel refuses what it needs.
pub fn cpu(duration: Duration, stop: &Receiver<()>) -> Result<Profile, ProfileError> {
    let mappings = host::code_mappings();
    let run = Run::begin(SampleKind::Cpu, &mappings)?;
    machine::set_handler().map_err(ProfileError::Timer)?;
    let mut stacks = Stacks::new(Code::of_process(mappings));
    let mut timers = Timers::default();
    let took = collect(&run, &mut stacks, duration, stop, |stacks| {
        let threads = host::thread_names();
        timers.follow(&threads);
        stacks.name_threads(threads);
    });
    if timers.running.is_empty()
        && let Some(error) = timers.error
    {
        return Err(ProfileError::Timer(error));
    }
    drop(timers.running);
    run.ring.drain(run.number, |sample| stacks.add(sample));
    Ok(stacks.finish(SampleKind::Cpu, took, run.ring.take_lost(), timers.missing))
}

/// Collects samples until the time is over, and calls `before` before each tick. Returns how long it took.
pub(crate) fn collect(
    run: &Run,
    stacks: &mut Stacks,
    duration: Duration,
    stop: &Receiver<()>,
    mut before: impl FnMut(&mut Stacks),
) -> Duration {
    let begun = Instant::now();
    loop {
        before(stacks);
        let left = duration.saturating_sub(begun.elapsed());
        if left.is_zero() || stop.recv_timeout(left.min(TICK)) != Err(RecvTimeoutError::Timeout) {
            return begun.elapsed();
        }
        run.ring.drain(run.number, |sample| stacks.add(sample));
    }
}

/// A timer for each thread.
#[derive(Default)]
struct Timers {
    running: BTreeMap<i32, ThreadTimer>,
    missing: usize,
    error: Option<io::Error>,
}

impl Timers {
    /// Gives each new thread a timer, and deletes those of threads that have ended.
    fn follow(&mut self, threads: &[(i32, String)]) {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        self.running.retain(|thread, _| threads.iter().any(|(running, _)| running == thread));
        self.missing = 0;
        for (thread, _) in threads {
            if *thread == own || self.running.contains_key(thread) {
                continue;
            }
            match ThreadTimer::start(*thread) {
                Ok(timer) => {
                    self.running.insert(*thread, timer);
                }
                // It has ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => {
                    self.missing += 1;
                    self.error = Some(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;
    use crate::Format;
    use crate::active::tests::alone;

    #[inline(never)]
    fn burns_cpu(end: &AtomicBool) -> u64 {
        let mut sum = 0_u64;
        while !end.load(Ordering::Relaxed) {
            sum = black_box(sum.wrapping_mul(31) + 7);
        }
        sum
    }

    /// The C library's copying has no frame pointer.
    #[inline(never)]
    fn copies_memory(end: &AtomicBool) -> u8 {
        let (from, mut to) = (vec![1_u8; 1 << 20], vec![0_u8; 1 << 20]);
        while !end.load(Ordering::Relaxed) {
            black_box(&mut to[..]).copy_from_slice(black_box(&from[..]));
        }
        to[7]
    }

    /// `malloc` calls functions of the C library that have no frame pointers either.
    #[inline(never)]
    fn allocates_memory(end: &AtomicBool) -> usize {
        let mut count = 0;
        while !end.load(Ordering::Relaxed) {
            let texts: Vec<Vec<u8>> = (1..200).map(|length| vec![7; length * 9]).collect();
            count += black_box(texts).len();
        }
        count
    }

    /// A thread's name, and its work until the flag is set.
    type Busy = (&'static str, fn(&AtomicBool));

    /// The lines of a profile while these run, each in its own thread.
    fn folded_during(busy: &[Busy]) -> String {
        let end = AtomicBool::new(false);
        let (_stop, stopped) = channel();
        thread::scope(|scope| {
            for (name, run) in busy {
                let end = &end;
                thread::Builder::new().name((*name).into()).spawn_scoped(scope, || run(end)).unwrap();
            }
            let profile = cpu(Duration::from_secs(1), &stopped);
            end.store(true, Ordering::Relaxed);
            let profile = profile.unwrap();
            assert!(profile.has_symbols && profile.lost == 0 && profile.missing_threads == 0);
            String::from_utf8(profile.write(Format::Folded, "")).unwrap()
        })
    }

    /// The samples of lines that fit, and of all lines of the thread.
    fn share(folded: &str, thread: &str, fits: impl Fn(&str) -> bool) -> (u64, u64) {
        let samples = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        let own = || folded.lines().filter(|line| line.starts_with(&format!("{thread};")));
        (own().filter(|line| fits(line)).map(samples).sum(), own().map(samples).sum())
    }

    fn mostly((some, all): (u64, u64)) -> bool {
        all >= 10 && some * 10 >= all * 8
    }

    #[test]
    fn busy_function_is_the_leaf_of_its_thread() {
        let _alone = alone();
        let folded = folded_during(&[("burner", |end| {
            black_box(burns_cpu(end));
        })]);
        let is_leaf = |line: &str| line.rsplit_once(' ').unwrap().0.ends_with("cpu::tests::burns_cpu");
        assert!(mostly(share(&folded, "burner", is_leaf)), "{folded}");
        // The stack reaches to the beginning of the thread.
        let is_whole =
            |line: &str| line.contains("start_thread") || line.contains("clone") || line.contains("thread::");
        assert!(mostly(share(&folded, "burner", is_whole)), "{folded}");
    }

    #[test]
    fn caller_of_the_c_library_is_found() {
        let _alone = alone();
        let folded = folded_during(&[
            ("copier", |end| {
                black_box(copies_memory(end));
            }),
            ("allocator", |end| {
                black_box(allocates_memory(end));
            }),
        ]);
        assert!(mostly(share(&folded, "copier", |line| line.contains("copies_memory"))), "{folded}");
        assert!(mostly(share(&folded, "allocator", |line| line.contains("allocates_memory"))), "{folded}");
    }

    #[test]
    fn profile_ends_when_its_reader_is_gone() {
        let _alone = alone();
        let (stop, stopped) = channel();
        drop(stop);
        let begun = Instant::now();
        cpu(Duration::from_secs(60), &stopped).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
