//! Sums and means, independent of the order of the numbers: integers are added as integers, and doubles without
//! rounding until the sum is read.

use super::codec::{Damaged, Reader, Writer};
use super::exact_sum::ExactSum;
use super::number::Number;

/// Integers below it are added in 128 bits; 2^27 of them can't overflow.
const INTEGER_BITS: u32 = 100;

/// A sum.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    numbers: u64,
    integers: i128,
    /// Doubles, and integers that are too large to be added with others in 128 bits.
    exact: Option<Box<ExactSum>>,
    has_doubles: bool,
}

impl Sum {
    pub(super) fn take(&mut self, number: Number) {
        self.numbers += 1;
        match number {
            Number::Int(number) if number.unsigned_abs() >> INTEGER_BITS == 0 => self.add_integer(number),
            Number::Int(number) => self.exact().add_int(number),
            Number::Double(number) => {
                self.has_doubles = true;
                self.exact().add_double(number);
            }
        }
    }

    fn add_integer(&mut self, number: i128) {
        if let Some(sum) = self.integers.checked_add(number) {
            self.integers = sum;
        } else {
            let before = std::mem::replace(&mut self.integers, number);
            self.exact().add_int(before);
        }
    }

    fn exact(&mut self) -> &mut ExactSum {
        self.exact.get_or_insert_default()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.has_doubles |= other.has_doubles;
        self.add_integer(other.integers);
        if let Some(exact) = &other.exact {
            self.exact().add(exact);
        }
    }

    /// The sum; `None` without numbers. An integer if all numbers were integers and it fits 128 bits, otherwise the
    /// nearest double.
    pub(super) fn total(&self) -> Option<Number> {
        if self.numbers == 0 {
            return None;
        }
        let Some(exact) = &self.exact else { return Some(Number::Int(self.integers)) };
        let mut all = exact.clone();
        all.add_int(self.integers);
        let integer = all.to_int().filter(|_| !self.has_doubles);
        Some(integer.map_or_else(|| Number::Double(all.to_double()), Number::Int))
    }

    /// The total divided by the number of values.
    pub(super) fn mean(&self) -> Option<f64> {
        self.total().map(|total| total.to_double() / self.numbers as f64)
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.exact.as_ref().map_or(0, |exact| size_of::<ExactSum>() + exact.heap_bytes())
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.unsigned(self.numbers);
        out.wide(self.integers);
        out.flag(self.has_doubles);
        out.option(self.exact.as_ref(), |out, exact| exact.save(out));
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            numbers: from.unsigned()?,
            integers: from.wide()?,
            has_doubles: from.flag()?,
            exact: from.option(ExactSum::restore)?.map(Box::new),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(sum: &Sum) -> String {
        let mut out = String::new();
        sum.total().unwrap().write(&mut out);
        out
    }

    fn sum(numbers: &[&str]) -> Sum {
        let mut sum = Sum::default();
        numbers.iter().for_each(|number| sum.take(Number::from_json(number).unwrap()));
        sum
    }

    #[test]
    fn sums_are_exact() {
        let most = i128::MAX.to_string();
        let below = format!("-{most}");
        for (numbers, total) in [
            (&["1", "2"][..], "3"),
            (&["9007199254740993", "-1"], "9007199254740992"),
            (&["0.1", "0.2"], "0.30000000000000004"),
            (&["0.1"; 10], "1.0"),
            (&["1e16", "1", "-1e16"], "1.0"),
            (&[&most, &most, &below, "-1"], "170141183460469231731687303715884105726"),
            (&[&most, "1"], "1.7014118346046923e+38"),
            (&["1.5e308", "1.5e308", "-1.5e308"], "1.5e+308"),
            (&["1.5e308", "1.5e308"], "null"),
        ] {
            assert_eq!(text(&sum(numbers)), total, "{numbers:?}");
        }
        assert!(sum(&[]).total().is_none() && sum(&[]).mean().is_none());
        assert_eq!(sum(&["1", "2"]).mean(), Some(1.5));
    }

    #[test]
    fn overflowing_integers_are_added_exactly() {
        let large = Number::Int((1 << INTEGER_BITS) - 1);
        let mut sum = Sum { integers: i128::MAX - 5, numbers: 1, ..Sum::default() };
        sum.take(large);
        sum.take(Number::Int(-((1 << INTEGER_BITS) - 1)));
        assert_eq!(text(&sum), (i128::MAX - 5).to_string());
    }

    proptest! {
        #[test]
        fn order_parts_and_restart_do_not_matter(
            mut numbers in prop::collection::vec(
                prop_oneof![any::<i128>().prop_map(Number::Int), any::<i64>().prop_map(|n| Number::Int(n.into())),
                    (-1e12..1e12).prop_map(Number::Double)], 1..30),
            cut in 0_usize..30,
        ) {
            let sum_of = |numbers: &[Number]| {
                let mut sum = Sum::default();
                numbers.iter().for_each(|number| sum.take(*number));
                sum
            };
            let whole = sum_of(&numbers);
            let (left, right) = numbers.split_at(cut.min(numbers.len()));
            let mut out = Writer::default();
            sum_of(left).save(&mut out);
            let bytes = out.into_bytes();
            let mut parts = Sum::restore(&mut Reader::new(&bytes)).unwrap();
            parts.merge(&sum_of(right));
            prop_assert_eq!(text(&parts), text(&whole));
            numbers.reverse();
            prop_assert_eq!(text(&sum_of(&numbers)), text(&whole));
        }
    }
}
