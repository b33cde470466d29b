//! The simulated disk's chance: SplitMix64, so that a seed alone decides everything.

/// A stream of numbers that its seed fixes.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(super) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 where `bound` is 0. The bounds here are small, so the remainder's bias is nil.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let number = self.number() % (bound.max(1) as u64);
        usize::try_from(number).expect("less than a usize")
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
