//! Pseudorandom numbers from a seed: the same seed gives the same numbers on every machine. They are no secrets.

/// The increment of the state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of many generators of a seed. Generators with consecutive numbers have nothing in common.
    #[must_use]
    pub const fn stream(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)) ^ number))
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, or 0 if `bound` is 0. The remainder's bias is negligible for bounds far below 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// As [`Random::below`], for an index.
    ///
    /// # Panics
    /// Never: a number below a `usize` is one.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("less than a usize")
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// A number below 2^`bits` whose magnitude is uniform: as many small as large ones, like sizes of files.
    pub fn size(&mut self, bits: u64) -> u64 {
        let limit = 1 << (self.below(bits) + 1);
        self.below(limit)
    }

    /// Puts items into a random order (Fisher and Yates, in Durstenfeld's form).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.index(end + 1);
            items.swap(end, other);
        }
    }
}

/// A bijection in which each bit of the result depends on all bits of the value.
const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_known_numbers() {
        let mut random = Random::new(1_234_567);
        assert_eq!([random.number(), random.number()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        assert!((0..1_000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let mut first: Vec<u64> = (0..1_000).map(|number| Random::stream(7, number).number()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 1_000);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<usize> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert!(items.iter().enumerate().any(|(at, item)| at != *item));
        items.sort_unstable();
        assert!(items.iter().enumerate().all(|(at, item)| at == *item));
    }
}
