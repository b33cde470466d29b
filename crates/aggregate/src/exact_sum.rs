//! A sum of doubles without any rounding until it is read: independent of their order.
//!
//! The sum is an integer in units of 2^-1074, of which every double is a multiple, kept in limbs of 32 bits. Each limb
//! is an `i64`, so carries wait until the sum is read. Only the limbs between the smallest and the largest added number
//! are kept: about five for typical numbers.

use super::codec::{Damaged, Reader, Writer};

/// The limbs that any sum of doubles needs, with room for carries.
const LIMBS_MAX: usize = 70;
const LIMB_BITS: usize = 32;
const LIMB_MASK: u64 = 0xffff_ffff;
/// Limbs above those of the largest number: room for the carries of 2^63 numbers.
const ROOM: usize = 2;
/// Additions after which a limb could be full.
const CARRY_EVERY: u32 = 1 << 30;
/// The bit of the unit of integers.
const UNIT_BIT: usize = 1074;

/// The exact sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExactSum {
    /// The number of the first limb.
    low: usize,
    limbs: Vec<i64>,
    additions: u32,
}

impl ExactSum {
    /// Adds a finite double.
    pub(super) fn add_double(&mut self, number: f64) {
        let bits = number.to_bits();
        let exponent = usize::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        self.add_bits(u128::from(mantissa), shift, number.is_sign_negative());
    }

    /// Adds an integer.
    pub(super) fn add_int(&mut self, number: i128) {
        let magnitude = number.unsigned_abs();
        // In two halves: shifted within a limb, one takes 96 bits.
        self.add_bits(magnitude & u128::from(u64::MAX), UNIT_BIT, number < 0);
        self.add_bits(magnitude >> 64, UNIT_BIT + 64, number < 0);
    }

    /// Adds another sum.
    pub(super) fn add(&mut self, other: &Self) {
        if other.limbs.is_empty() {
            return;
        }
        self.reach(other.low, other.low + other.limbs.len() - ROOM);
        let mut other = other.clone();
        other.carry();
        self.carry();
        let offset = other.low - self.low;
        for (at, limb) in other.limbs.iter().enumerate() {
            self.limbs[offset + at] += limb;
        }
        self.additions += 1;
    }

    /// At most 64 bits, shifted.
    fn add_bits(&mut self, mantissa: u128, shift: usize, is_negative: bool) {
        if mantissa == 0 {
            return;
        }
        let (limb, within) = (shift / LIMB_BITS, shift % LIMB_BITS);
        let mut left = mantissa << within;
        self.reach(limb, limb + 3);
        let mut at = limb - self.low;
        while left != 0 {
            let part = i64::try_from(left & u128::from(LIMB_MASK)).unwrap_or(0);
            self.limbs[at] += if is_negative { -part } else { part };
            left >>= LIMB_BITS;
            at += 1;
        }
        self.additions += 1;
        if self.additions >= CARRY_EVERY {
            self.carry();
        }
    }

    /// Makes room for the limbs from `low` to before `high`.
    fn reach(&mut self, low: usize, high: usize) {
        if self.limbs.is_empty() {
            self.low = low;
        }
        if low < self.low {
            let more = self.low - low;
            self.limbs.splice(0..0, std::iter::repeat_n(0, more));
            self.low = low;
        }
        let length = high + ROOM - self.low;
        if length > self.limbs.len() {
            // The carry of the last limb beyond 32 bits stays there: its sign is the sum's.
            self.carry();
            self.limbs.reserve_exact(length - self.limbs.len());
            self.limbs.resize(length, 0);
        }
    }

    /// Brings each limb but the last between 0 and 2^32.
    fn carry(&mut self) {
        let mut carried = 0;
        let last = self.limbs.len().saturating_sub(1);
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            *limb += carried;
            if at < last {
                carried = *limb >> LIMB_BITS;
                *limb &= LIMB_MASK.cast_signed();
            }
        }
        self.additions = 0;
    }

    /// Whether it is below zero, and its limbs without the sign, from limb 0 on.
    fn magnitude(&self) -> (bool, Vec<u64>) {
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.limbs.last().is_some_and(|limb| *limb < 0);
        if is_negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let mut limbs = vec![0; sum.low];
        limbs.extend(sum.limbs.iter().map(|limb| limb.cast_unsigned()));
        // The last limb may be longer than the others.
        let last = limbs.pop().unwrap_or(0);
        limbs.extend([last & LIMB_MASK, last >> LIMB_BITS]);
        (is_negative, limbs)
    }

    /// The sum as an integer, if it is one that fits 128 bits.
    pub(super) fn to_int(&self) -> Option<i128> {
        let (is_negative, limbs) = self.magnitude();
        let (mut value, mut beyond) = (0_u128, false);
        for (at, limb) in limbs.iter().enumerate().filter(|(_, limb)| **limb != 0) {
            match (at * LIMB_BITS).checked_sub(UNIT_BIT) {
                Some(shift) if shift < 128 && (u128::from(*limb) << shift) >> shift == u128::from(*limb) => {
                    value |= u128::from(*limb) << shift;
                }
                // The limb that the unit is in.
                None if (at + 1) * LIMB_BITS > UNIT_BIT && limb.trailing_zeros() >= UNIT_OFFSET => {
                    value |= u128::from(*limb >> UNIT_OFFSET);
                }
                _ => beyond = true,
            }
        }
        let value = i128::try_from(value).ok().filter(|_| !beyond)?;
        Some(if is_negative { -value } else { value })
    }

    /// The nearest double, and of two equally near ones the even one; infinite beyond the largest.
    pub(super) fn to_double(&self) -> f64 {
        let (is_negative, limbs) = self.magnitude();
        let Some(top) = limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let highest = top * LIMB_BITS + LIMB_BITS - 1 - (limbs[top] << LIMB_BITS).leading_zeros() as usize;
        let shift = highest.saturating_sub(52);
        let bit = |at: usize| (limbs[at / LIMB_BITS] >> (at % LIMB_BITS)) & 1;
        let mut mantissa = (shift..=highest).rev().fold(0, |mantissa, at| mantissa << 1 | bit(at));
        if shift > 0 && bit(shift - 1) == 1 {
            let has_more = (0..shift - 1).any(|at| bit(at) == 1);
            mantissa += u64::from(has_more || mantissa & 1 == 1);
        }
        // The bits of consecutive doubles are consecutive numbers: a mantissa that becomes too long increments the
        // exponent.
        let bits = ((shift as u64) << 52) + mantissa;
        let double = if bits >= f64::INFINITY.to_bits() { f64::INFINITY } else { f64::from_bits(bits) };
        if is_negative { -double } else { double }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.limbs.len() * size_of::<i64>()
    }

    pub(super) fn save(&self, out: &mut Writer) {
        let mut sum = self.clone();
        sum.carry();
        out.count(sum.low);
        out.count(sum.limbs.len());
        sum.limbs.iter().for_each(|limb| out.signed(*limb));
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let low = from.count_to(LIMBS_MAX)?;
        let length = from.count_to(LIMBS_MAX + ROOM - low)?;
        let limbs = (0..length).map(|_| from.signed()).collect::<Result<Vec<_>, _>>()?;
        let last = limbs.len().saturating_sub(1);
        let is_limb =
            |(at, limb): (usize, &i64)| if at < last { *limb >> LIMB_BITS == 0 } else { limb.abs() >> 40 == 0 };
        if (1..=ROOM).contains(&length) || !limbs.iter().enumerate().all(is_limb) {
            return Err(Damaged);
        }
        Ok(Self { low, limbs, additions: 0 })
    }
}

/// The bit of the unit within its limb.
const UNIT_OFFSET: u32 = 18;
const _: () = assert!(UNIT_BIT % LIMB_BITS == UNIT_OFFSET as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(numbers: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add_double(*number));
        sum
    }

    #[test]
    fn cancelling_terms_leave_the_rest() {
        assert_eq!(sum(&[1e308, 1e-308, -1e308]).to_double(), 1e-308);
        assert_eq!(sum(&[1e16, 1.0, -1e16]).to_double(), 1.0);
        assert_eq!(sum(&[0.1; 10]).to_double(), 1.0, "the tenths' errors together are less than half a unit");
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).to_double(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).to_double(), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]).to_double(), f64::NEG_INFINITY);
        assert_eq!(sum(&[5e-324, 5e-324]).to_double(), 1e-323);
        assert_eq!(ExactSum::default().to_double(), 0.0);
    }

    #[test]
    fn halves_are_rounded_to_the_even_one() {
        let unit = 2.0_f64.powi(53);
        assert_eq!(sum(&[unit, 1.0]).to_double(), unit);
        assert_eq!(sum(&[unit, 1.0, 5e-324]).to_double(), unit + 2.0);
        assert_eq!(sum(&[unit + 2.0, 1.0]).to_double(), unit + 4.0);
        assert_eq!(sum(&[unit * 2.0 - 1.0, 0.5]).to_double(), unit * 2.0);
    }

    #[test]
    fn integers_stay_integers() {
        let mut sum = ExactSum::default();
        for _ in 0..3 {
            sum.add_int(i128::MAX);
        }
        assert_eq!(sum.to_int(), None);
        sum.add_int(i128::MIN);
        sum.add_int(i128::MIN);
        assert_eq!(sum.to_int(), Some(i128::MAX - 2));
        sum.add_double(0.5);
        assert_eq!(sum.to_int(), None);
        sum.add_double(-0.5);
        assert_eq!(sum.to_int(), Some(i128::MAX - 2));
    }

    proptest! {
        #[test]
        fn integers_come_back(numbers: Vec<i64>) {
            let mut sum = ExactSum::default();
            numbers.iter().for_each(|number| sum.add_int((*number).into()));
            let total: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
            prop_assert_eq!(sum.to_int(), Some(total));
            prop_assert_eq!(sum.to_double(), total as f64);
        }

        #[test]
        fn one_number_comes_back(number in proptest::num::f64::ANY.prop_filter("finite", |n| n.is_finite())) {
            let mut sum = sum(&[number]);
            prop_assert_eq!(sum.to_double(), number);
            sum.add_double(-number);
            prop_assert_eq!(sum.to_double(), 0.0);
        }

        #[test]
        fn neither_order_nor_parts_matter(
            mut numbers in prop::collection::vec(proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL, 0..40),
            cut in 0_usize..40,
        ) {
            let whole = sum(&numbers);
            let (left, right) = numbers.split_at(cut.min(numbers.len()));
            let mut parts = sum(left);
            parts.add(&sum(right));
            prop_assert_eq!(parts.to_double().to_bits(), whole.to_double().to_bits());
            numbers.sort_by(f64::total_cmp);
            prop_assert_eq!(sum(&numbers).to_double().to_bits(), whole.to_double().to_bits());
            prop_assert_eq!(sum(&numbers).heap_bytes(), whole.heap_bytes());
            prop_assert_eq!(parts.heap_bytes(), whole.heap_bytes());
        }

        #[test]
        fn two_numbers_are_rounded_as_the_processor_does(left: f64, right: f64) {
            prop_assume!(left.is_finite() && right.is_finite());
            prop_assert_eq!(sum(&[left, right]).to_double(), left + right);
        }
    }
}
