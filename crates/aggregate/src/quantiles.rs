//! Quantiles with a bounded relative error: DDSketch (Masson and others, 2019). A double's own bits name its bin, so no
//! logarithm, which may differ between machines, decides where a number is counted.
//!
//! Each power of two is divided into 64 bins of equal width. A bin's value differs from any number in it by at most
//! 1/129 of that number, which is below 0.8 %.

use super::codec::{Damaged, Reader, Writer};

/// Bits of the fraction that distinguish the bins of one power of two.
const BIN_BITS: u32 = 6;
const FRACTION_BITS: u32 = 52;
/// Bins of a sketch. With more of them the lowest are counted together, whose error is then unbounded. That needs
/// numbers of which the largest is more than 2^32 times the smallest, with values all over the range.
const BINS_MAX: usize = 2048;
/// Above the number of any bin.
const BIN_END: i32 = 0x7ff << BIN_BITS;

/// The sketch: how many numbers are in each bin, by the numbers' order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quantiles {
    bins: Vec<(i32, u64)>,
}

/// The bin of a finite number: 0 for zero, negative for negative ones.
fn bin(number: f64) -> i32 {
    let place = i32::try_from(number.abs().to_bits() >> (FRACTION_BITS - BIN_BITS)).unwrap_or(0);
    match number {
        0.0 => 0,
        _ if number < 0.0 => -place - 1,
        _ => place + 1,
    }
}

/// The value of a bin: its relative distance to both ends is equal.
fn middle(bin: i32) -> f64 {
    let Some(place) = bin.unsigned_abs().checked_sub(1) else { return 0.0 };
    let end = |place: u32| f64::from_bits(u64::from(place) << (FRACTION_BITS - BIN_BITS));
    let (low, high) = (end(place), end(place + 1));
    // 2·low·high/(low + high), in an order in which nothing overflows.
    let middle = if high.is_finite() && low > 0.0 { low * (2.0 / (low / high + 1.0)) } else { low };
    if bin < 0 { -middle } else { middle }
}

impl Quantiles {
    /// Adds a finite number.
    pub(super) fn take(&mut self, number: f64) {
        self.add(bin(number), 1);
        self.collapse();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.bins.iter().for_each(|(bin, count)| self.add(*bin, *count));
        self.collapse();
    }

    fn add(&mut self, bin: i32, count: u64) {
        match self.bins.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(at) => self.bins[at].1 = self.bins[at].1.saturating_add(count),
            Err(at) => self.bins.insert(at, (bin, count)),
        }
    }

    /// Counts the lowest bins together: in any order of numbers, the highest stay unchanged, and the lowest of these
    /// has the rest.
    fn collapse(&mut self) {
        let more = self.bins.len().saturating_sub(BINS_MAX);
        if more > 0 {
            let count = self.bins.drain(..more).fold(0_u64, |sum, (_, count)| sum.saturating_add(count));
            self.add(self.bins[0].0, count);
        }
    }

    /// Approximately the smallest number that is at least as large as the fraction `of_one` of all (the nearest rank,
    /// like `percentile_disc` of SQL); `None` without numbers.
    pub(super) fn quantile(&self, of_one: f64) -> Option<f64> {
        let all = self.bins.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let rank = nearest_rank(of_one, all)?;
        let mut below = 0_u64;
        let found = self.bins.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank
        });
        found.or(self.bins.last()).map(|(bin, _)| middle(*bin))
    }

    /// Bytes on the heap. A vector that grows may have twice its length.
    pub(super) fn heap_bytes(&self) -> usize {
        2 * size_of_val(self.bins.as_slice())
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.count(self.bins.len());
        for (bin, count) in &self.bins {
            out.signed((*bin).into());
            out.unsigned(*count);
        }
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let length = from.count_to(BINS_MAX)?;
        let mut bins: Vec<(i32, u64)> = Vec::new();
        for _ in 0..length {
            let bin = i32::try_from(from.signed()?).ok().filter(|bin| bin.abs() <= BIN_END).ok_or(Damaged)?;
            if bins.last().is_some_and(|(before, _)| *before >= bin) {
                return Err(Damaged);
            }
            bins.push((bin, from.unsigned()?));
        }
        Ok(Self { bins })
    }
}

/// The rank of the quantile among this many numbers, from 1; `None` without numbers.
fn nearest_rank(of_one: f64, all: u64) -> Option<u64> {
    // A result that is a whole number except for rounding, such as 0.07 × 100, is that number.
    let rank = (of_one * all as f64 * (1.0 - f64::EPSILON * 4.0)).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to `all`")]
    let rank = rank as u64;
    (all > 0).then(|| rank.clamp(1, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // 1/129, and some rounding.
    const ERROR: f64 = 1.0 / 128.9;

    fn of(numbers: &[f64]) -> Quantiles {
        let mut quantiles = Quantiles::default();
        numbers.iter().for_each(|number| quantiles.take(*number));
        quantiles
    }

    #[test]
    fn no_numbers_have_no_quantile() {
        assert_eq!(Quantiles::default().quantile(0.5), None);
        assert_eq!(of(&[0.0, -0.0]).quantile(0.5), Some(0.0));
    }

    #[test]
    fn the_rank_is_the_nearest() {
        let ranks = [(0.0, 5), (0.2, 5), (0.21, 5), (0.5, 2), (0.99, 2), (0.07, 100), (0.99, 100), (1.0, 3)];
        assert_eq!(ranks.map(|(of_one, all)| nearest_rank(of_one, all).unwrap()), [1, 1, 2, 1, 2, 7, 99, 3]);
        assert!(of(&[1.0, 1000.0]).quantile(0.99).unwrap() > 990.0, "the slow one of two");
    }

    #[test]
    fn highest_bins_stay_exact_beyond_the_limit() {
        let numbers: Vec<f64> = (0..3_000).map(|power| 1.02_f64.powi(power)).collect();
        let quantiles = of(&numbers);
        assert_eq!(quantiles.bins.len(), BINS_MAX);
        let mut turned = numbers.clone();
        turned.reverse();
        assert_eq!(of(&turned), quantiles);
        let median = quantiles.quantile(0.5).unwrap();
        assert!((median / numbers[1_499] - 1.0).abs() < ERROR);
    }

    proptest! {
        #[test]
        fn the_error_is_bounded(
            mut numbers in prop::collection::vec(
                prop_oneof![-1e6..1e6_f64, (0..1_000).prop_map(f64::from), proptest::num::f64::NORMAL], 1..200),
            of_one in 0.0..=1.0_f64,
        ) {
            let quantile = of(&numbers).quantile(of_one).unwrap();
            numbers.sort_by(f64::total_cmp);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let exact = numbers[((of_one * numbers.len() as f64).ceil() as usize).saturating_sub(1)];
            prop_assert!((quantile - exact).abs() <= exact.abs() * ERROR, "{} for {}", quantile, exact);
        }

        #[test]
        fn order_parts_and_restart_do_not_matter(
            mut numbers in prop::collection::vec(proptest::num::f64::NORMAL, 0..5_000),
            cut in 0_usize..5_000,
        ) {
            let whole = of(&numbers);
            let (left, right) = numbers.split_at(cut.min(numbers.len()));
            let mut out = Writer::default();
            of(left).save(&mut out);
            let bytes = out.into_bytes();
            let mut parts = Quantiles::restore(&mut Reader::new(&bytes)).unwrap();
            parts.merge(&of(right));
            prop_assert_eq!(&parts, &whole);
            numbers.sort_by(f64::total_cmp);
            prop_assert_eq!(of(&numbers), whole);
        }
    }
}
