//! How long to wait before the next attempt: exponential, with full jitter.

use std::time::Duration;

use random::Random;

const FIRST: Duration = Duration::from_millis(100);

/// The pauses of one lane.
#[derive(Debug)]
pub(crate) struct Backoff {
    random: Random,
    ceiling: Duration,
    max: Duration,
}

impl Backoff {
    pub(crate) const fn new(seed: u64, max: Duration) -> Self {
        Self { random: Random::new(seed), ceiling: FIRST, max }
    }

    /// Another one with separate pauses.
    pub(crate) const fn another(&mut self) -> Self {
        Self::new(self.random.number(), self.max)
    }

    /// An attempt has succeeded: the next pause is short again.
    pub(crate) const fn reset(&mut self) {
        self.ceiling = FIRST;
    }

    /// A pause between nothing and a ceiling that doubles up to the maximum.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = self.ceiling.min(self.max);
        self.ceiling = (self.ceiling * 2).min(self.max);
        // 32 random bits as a fraction.
        let fraction = f64::from(u32::try_from(self.random.number() >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        ceiling.mul_f64(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_maximum_with_full_jitter() {
        let max = Duration::from_mins(1);
        let mut backoff = Backoff::new(7, max);
        let mut ceiling = FIRST;
        for _ in 0..40 {
            assert!(backoff.next() <= ceiling);
            ceiling = (ceiling * 2).min(max);
        }
        let pauses: Vec<Duration> = (0..1000).map(|_| backoff.next()).collect();
        assert!(pauses.iter().any(|pause| *pause < max / 10) && pauses.iter().any(|pause| *pause > max / 10 * 9));
        assert!(pauses.iter().all(|pause| *pause <= max));
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
