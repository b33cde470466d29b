//! Structured fuzzing on the stable toolchain: inputs are mutations of real ones, and an input with a new outcome is mutated further.
//!
//! A test gives samples and a dictionary of tokens, and checks each input: it must not panic, and the rules for all inputs must hold.
//! The check returns the outcome, such as the kind of an error. `cargo xtask fuzz` sets how long each target runs.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use random::Random;

/// The environment variable with the seconds that each target runs.
pub const SECONDS: &str = "FOREBAY_FUZZ_SECONDS";
/// The environment variable that repeats a run.
pub const SEED: &str = "FOREBAY_SEED";
/// How long a target runs among other tests.
const SECONDS_DEFAULT: f64 = 0.2;
/// No input is longer than the longest sample by more.
const GROWTH_MAX: usize = 4096;
/// Inputs that are kept for their outcomes.
const KEPT_MAX: usize = 4096;
const MUTATIONS_MAX: u64 = 6;

/// The parts of inputs.
#[derive(Clone, Copy, Debug)]
pub struct Corpus<'a> {
    /// Real inputs.
    pub samples: &'a [&'a [u8]],
    /// Pieces that mean something in them.
    pub tokens: &'a [&'a [u8]],
}

/// Checks mutated inputs for the time that the environment sets. Returns how many.
///
/// # Panics
/// If `check` does. The input and the seed are printed before.
pub fn run<O: Hash>(target: &str, corpus: Corpus<'_>, mut check: impl FnMut(&[u8]) -> O) -> u64 {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS_DEFAULT);
    let seed = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(target));
    let mut inputs = Inputs::new(corpus, seed);
    let (begun, limit) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut count = 0;
    while begun.elapsed() < limit {
        let input = inputs.next();
        match catch_unwind(AssertUnwindSafe(|| check(&input))) {
            Ok(outcome) => inputs.learn(input, &outcome),
            Err(panic) => {
                eprintln!("{target}: {SEED}={seed}, input {count}: \"{}\"", input.escape_ascii());
                resume_unwind(panic);
            }
        }
        count += 1;
    }
    println!("{target}: {count} inputs, {} outcomes, seed {seed}", inputs.outcomes.len());
    count
}

/// The sources of inputs.
struct Inputs<'a> {
    tokens: &'a [&'a [u8]],
    kept: Vec<Vec<u8>>,
    /// Hashes of the outcomes so far.
    outcomes: HashSet<u64>,
    hasher: RandomState,
    length_max: usize,
    random: Random,
}

impl<'a> Inputs<'a> {
    fn new(corpus: Corpus<'a>, seed: u64) -> Self {
        let kept: Vec<Vec<u8>> = corpus.samples.iter().map(|sample| sample.to_vec()).collect();
        assert!(!kept.is_empty(), "there is nothing to mutate");
        let length_max = kept.iter().map(Vec::len).max().unwrap_or(0) + GROWTH_MAX;
        let (outcomes, hasher) = (HashSet::new(), RandomState::new());
        Self { tokens: corpus.tokens, kept, outcomes, hasher, length_max, random: Random::new(seed) }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut input = self.kept[self.random.index(self.kept.len())].clone();
        for _ in 0..=self.random.below(MUTATIONS_MAX) {
            self.mutate(&mut input);
        }
        input.truncate(self.length_max);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.random.index(input.len() + 1);
        let end = at + self.random.index((input.len() - at).min(32) + 1);
        match self.random.below(9) {
            0 => drop(input.drain(at..end)),
            1 => input.truncate(at),
            2 if at < input.len() => input[at] ^= 1 << self.random.below(8),
            3 if at < input.len() => input[at] = self.random.pick(&[0, 1, 0x20, 0x7f, 0x80, 0xff]),
            4 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            // A piece of another input.
            5 => {
                let other = &self.kept[self.random.index(self.kept.len())];
                let from = self.random.index(other.len() + 1);
                let to = from + self.random.index((other.len() - from).min(64) + 1);
                let piece = other[from..to].to_vec();
                input.splice(at..end, piece);
            }
            // A number at or next to a boundary.
            6 if at + 4 <= input.len() => {
                let value = self.random.pick(&[0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xffff, 0x0100_0000]);
                input[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            _ if !self.tokens.is_empty() => {
                let token = self.random.pick(self.tokens);
                input.splice(at..if self.random.once_in(2) { at } else { end }, token.iter().copied());
            }
            _ => input.insert(at, u8::try_from(self.random.below(256)).unwrap_or(0)),
        }
    }

    fn learn(&mut self, input: Vec<u8>, outcome: &impl Hash) {
        if self.kept.len() < KEPT_MAX && self.outcomes.insert(self.hasher.hash_one(outcome)) {
            self.kept.push(input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_error_is_found() {
        let corpus = Corpus { samples: &[b"{\"a\":1}"], tokens: &[b"[", b"null"] };
        let found = catch_unwind(|| run("planted", corpus, |input| assert!(!input.starts_with(b"[[null"))));
        // The outcome says how far an input got, as the kinds of errors do.
        let guided = catch_unwind(|| {
            run("guided", corpus, |input| {
                let matching = input.iter().zip(b"[[null[").take_while(|(one, other)| one == other).count();
                assert!(matching < 7, "planted");
                matching
            })
        });
        assert!(found.is_err() || guided.is_err());
        assert!(guided.is_err());
    }

    #[test]
    fn inputs_of_a_seed_are_the_same() {
        let corpus = Corpus { samples: &[b"one", b"two"], tokens: &[b"three"] };
        let of = |seed| {
            let mut inputs = Inputs::new(corpus, seed);
            (0..100).map(|_| inputs.next()).collect::<Vec<_>>()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }
}
