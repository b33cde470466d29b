//! Numbers that look random and are the same on every machine.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Random(u64);

impl Random {
    /// The numbers for record `number` of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        // Mixed apart: neighbours among the records would otherwise share all but one of their numbers.
        Self(mix(mix(seed.wrapping_add(STEP)) ^ number))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `end`, which must not be 0. The bias is far below what anybody could see.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of `choices`, which must not be empty.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.below(choices.len() as u64);
        choices[usize::try_from(at).expect("below the length of a slice")]
    }

    /// A number of up to 2^`bits` whose size is spread evenly: as many small as large ones, like sizes of files.
    pub(super) fn size(&mut self, bits: u64) -> u64 {
        let limit = 1 << (self.below(bits) + 1);
        self.below(limit)
    }
}

/// Each value gives another one, and each bit of it depends on all bits of the value.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
