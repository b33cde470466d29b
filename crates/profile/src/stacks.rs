//! A profile: stacks by their names, each with its weight.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::code::Code;
use crate::ring::Sample;

/// Different stacks that are kept. Samples of further ones count as one stack of their thread.
const STACKS_MAX: usize = 20_000;
const OTHER_STACKS: &str = "(other stacks)";
/// The name of a thread that ended before it was listed.
const ENDED: &str = "(ended thread)";

/// What the samples of a profile count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// Ticks of CPU time.
    Cpu,
    /// Bytes that were allocated.
    Heap,
}

/// Where time went, or what allocated memory.
#[derive(Debug)]
pub struct Profile {
    /// What it counts.
    pub kind: SampleKind,
    /// How long it took samples.
    pub duration: Duration,
    /// Samples that were lost, because too many came within a tick of the collector.
    pub lost: u64,
    /// Threads that could not be sampled.
    pub missing_threads: usize,
    /// Whether the program's functions have names. Otherwise frames have addresses.
    pub has_symbols: bool,
    pub(crate) names: Vec<String>,
    pub(crate) stacks: Vec<Stack>,
}

/// A stack that was seen.
#[derive(Debug)]
pub(crate) struct Stack {
    /// The numbers of names, from the root: first that of the thread.
    pub(crate) frames: Box<[u32]>,
    /// Ticks, or bytes.
    pub(crate) weight: u64,
    /// Samples.
    pub(crate) samples: u64,
}

/// A thread, and the numbers of names from the root of its stack.
type ThreadStack = (i32, Box<[u32]>);

/// Stacks while samples come.
pub(crate) struct Stacks {
    code: Code,
    threads: BTreeMap<i32, String>,
    /// By the thread's number and the numbers of names from the root: weight and number of samples.
    sums: HashMap<ThreadStack, (u64, u64)>,
    stack: Vec<u32>,
}

impl Stacks {
    pub(crate) fn new(code: Code) -> Self {
        Self { code, threads: BTreeMap::new(), sums: HashMap::new(), stack: Vec::new() }
    }

    /// Remembers the names of the threads that run now. A thread gets its name a moment after its start.
    pub(crate) fn name_threads(&mut self, named: Vec<(i32, String)>) {
        self.threads.extend(named);
    }

    pub(crate) fn add(&mut self, sample: &Sample) {
        self.stack.clear();
        self.code.resolve(sample, &mut self.stack);
        self.stack.reverse();
        let mut key = (sample.thread, self.stack.as_slice().into());
        if self.sums.len() >= STACKS_MAX && !self.sums.contains_key(&key) {
            key.1 = [self.code.number(OTHER_STACKS)].into();
        }
        let (weight, samples) = self.sums.entry(key).or_default();
        *weight += sample.weight;
        *samples += 1;
    }

    /// The profile. Threads of one name are one.
    pub(crate) fn finish(mut self, kind: SampleKind, duration: Duration, lost: u64, missing_threads: usize) -> Profile {
        let has_symbols = self.code.has_symbols();
        let mut named: HashMap<Box<[u32]>, (u64, u64)> = HashMap::new();
        for ((thread, frames), (weight, samples)) in self.sums {
            let name = self.threads.get(&thread).map_or(ENDED, String::as_str);
            let frames = [self.code.number(name)].into_iter().chain(frames).collect();
            let sum = named.entry(frames).or_default();
            *sum = (sum.0 + weight, sum.1 + samples);
        }
        let stack = |(frames, (weight, samples))| Stack { frames, weight, samples };
        let stacks = named.into_iter().map(stack).collect();
        Profile { kind, duration, lost, missing_threads, has_symbols, names: self.code.into_names(), stacks }
    }
}

impl Profile {
    pub(crate) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// The number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum()
    }

    /// What a reader must know about the profile, a sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.kind == SampleKind::Heap {
            remarks.push("Allocations of C libraries (SQLite, zstd) are missing.".to_owned());
        }
        if self.lost > 0 {
            remarks.push(format!("{} samples were lost.", self.lost));
        }
        if self.missing_threads > 0 {
            remarks.push(format!("{} threads could not be sampled.", self.missing_threads));
        }
        if !self.has_symbols {
            remarks.push("The binary has no symbols, so its frames are addresses.".to_owned());
        }
        remarks
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A profile of three stacks.
    pub(crate) fn example(kind: SampleKind) -> Profile {
        let names = ["shard-0", "core::main", "Vec<[u8; 4]>::push & \"x\"", "sqlite3Step"].map(str::to_owned).into();
        let stack = |frames: &[u32], weight| Stack { frames: frames.into(), weight, samples: weight };
        let stacks = vec![stack(&[0, 1], 1), stack(&[0, 1, 2], 6), stack(&[0, 3], 3)];
        let duration = Duration::from_secs(2);
        Profile { kind, duration, lost: 4, missing_threads: 1, has_symbols: false, names, stacks }
    }

    #[test]
    fn missing_parts_are_remarked() {
        let remarks = |kind| example(kind).remarks().join("\n");
        for part in ["4 samples were lost", "1 threads", "no symbols"] {
            assert!(remarks(SampleKind::Cpu).contains(part), "{part}");
        }
        assert!(remarks(SampleKind::Heap).contains("C libraries") && !remarks(SampleKind::Cpu).contains("C libraries"));
    }

    #[test]
    fn stacks_without_number_become_one() {
        let mut stacks = Stacks::new(Code::of_process(Vec::new()));
        stacks.name_threads(vec![(7, "worker".into())]);
        for address in 0..STACKS_MAX + 5 {
            stacks.add(&Sample { thread: 7, weight: 2, frames: vec![address], candidates: Vec::new() });
        }
        stacks.add(&Sample { thread: 8, weight: 2, frames: vec![1], candidates: Vec::new() });
        assert_eq!(stacks.sums.len(), STACKS_MAX + 2);
        let profile = stacks.finish(SampleKind::Cpu, Duration::ZERO, 0, 0);
        assert_eq!((profile.stacks.len(), profile.samples()), (STACKS_MAX + 2, STACKS_MAX as u64 + 6));
        let others = profile.stacks.iter().find(|stack| stack.weight == 10).unwrap();
        assert_eq!(profile.name(others.frames[0]), "worker");
        assert!(profile.stacks.iter().any(|stack| profile.name(stack.frames[0]) == ENDED));
    }
}
