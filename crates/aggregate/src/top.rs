//! The most frequent values: the summary of Misra and Gries (1982), which can be merged (Agarwal and others, 2012).
//!
//! Up to twice its capacity of different values the counts are exact. Beyond it each is too low by at most the
//! summary's `error`, which is at most the number of records divided by the capacity. The values that such a summary
//! forgets depend on their order. So each shard, in which the order is fixed, has one, and they are merged only when
//! they are read.

use super::codec::{Damaged, Reader, Writer};

/// The cost of a value in addition to its text.
const ENTRY_BYTES: usize = 2 * size_of::<(Box<str>, u64)>() + 16;

/// The most frequent values of each shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Top {
    shards: Vec<(u16, Summary)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// By value, with a lower bound of its frequency.
    counts: Vec<(Box<str>, u64)>,
    /// The counts are too low by at most this number.
    error: u64,
    /// The most bytes that it had: the charged bytes must not depend on when they are read.
    bytes_max: usize,
}

/// A value as JSON, with an upper bound of its frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frequent {
    pub(super) value: Box<str>,
    pub(super) count: u64,
}

impl Top {
    /// Adds a value from a record of the shard.
    pub(super) fn take(&mut self, shard: u16, value: &str, capacity: usize) {
        self.summary(shard).take(value, capacity);
    }

    fn summary(&mut self, shard: u16) -> &mut Summary {
        let at = match self.shards.binary_search_by_key(&shard, |(shard, _)| *shard) {
            Ok(at) => at,
            Err(at) => {
                self.shards.insert(at, (shard, Summary::default()));
                at
            }
        };
        &mut self.shards[at].1
    }

    pub(super) fn merge(&mut self, other: &Self, capacity: usize) {
        for (shard, summary) in &other.shards {
            self.summary(*shard).merge(summary, capacity);
        }
    }

    /// At most `most` values, the most frequent first and of equally frequent ones the smaller text, and the error of
    /// their counts.
    pub(super) fn read(&self, most: usize, capacity: usize) -> (Vec<Frequent>, u64) {
        let mut all = Summary::default();
        self.shards.iter().for_each(|(_, summary)| all.merge(summary, capacity));
        let mut found: Vec<_> = all.counts.into_iter().map(|(value, count)| Frequent { value, count }).collect();
        found.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.value.cmp(&other.value)));
        found.truncate(most);
        (found, all.error)
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.shards.iter().map(|(_, summary)| size_of::<(u16, Summary)>() + summary.bytes_max).sum()
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.count(self.shards.len());
        for (shard, summary) in &self.shards {
            out.unsigned((*shard).into());
            out.unsigned(summary.error);
            out.count(summary.bytes_max);
            out.count(summary.counts.len());
            for (value, count) in &summary.counts {
                out.text(value);
                out.unsigned(*count);
            }
        }
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut shards: Vec<(u16, Summary)> = Vec::new();
        for _ in 0..from.count()? {
            let shard = u16::try_from(from.unsigned()?).map_err(|_| Damaged)?;
            if shards.last().is_some_and(|(before, _)| *before >= shard) {
                return Err(Damaged);
            }
            shards.push((shard, Summary::restore(from)?));
        }
        Ok(Self { shards })
    }
}

impl Summary {
    fn take(&mut self, value: &str, capacity: usize) {
        let before = self.counts.len();
        self.add(value, 1);
        if self.counts.len() == before {
            return;
        }
        self.bytes_max = self.bytes_max.max(self.bytes());
        // Twice as many, so forgetting half of them costs little for each.
        if self.counts.len() > 2 * capacity {
            self.shrink(capacity);
        }
    }

    fn merge(&mut self, other: &Self, capacity: usize) {
        other.counts.iter().for_each(|(value, count)| self.add(value, *count));
        self.error = self.error.saturating_add(other.error);
        if self.counts.len() > 2 * capacity {
            self.shrink(capacity);
        }
        self.bytes_max = self.bytes_max.max(other.bytes_max).max(self.bytes());
    }

    fn add(&mut self, value: &str, count: u64) {
        match self.counts.binary_search_by(|(other, _)| (**other).cmp(value)) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (value.into(), count)),
        }
    }

    /// Subtracts from every count that of the first one beyond the capacity, and forgets those that become zero.
    fn shrink(&mut self, capacity: usize) {
        let mut counts: Vec<u64> = self.counts.iter().map(|(_, count)| *count).collect();
        let (_, less, _) = counts.select_nth_unstable_by(capacity, |one, other| other.cmp(one));
        let less = *less;
        self.counts.retain_mut(|(_, count)| {
            *count = count.saturating_sub(less);
            *count > 0
        });
        self.error = self.error.saturating_add(less);
    }

    fn bytes(&self) -> usize {
        self.counts.len() * ENTRY_BYTES + self.counts.iter().map(|(value, _)| value.len()).sum::<usize>()
    }

    fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let error = from.unsigned()?;
        let bytes_max = from.count_to(u32::MAX as usize)?;
        let mut counts: Vec<(Box<str>, u64)> = Vec::new();
        for _ in 0..from.count()? {
            let value = from.text()?;
            if counts.last().is_some_and(|(before, _)| **before >= *value) {
                return Err(Damaged);
            }
            counts.push((value.into(), from.unsigned()?));
        }
        Ok(Self { counts, error, bytes_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn up_to_the_capacity_counts_are_exact() {
        let mut top = Top::default();
        for (shard, value) in [(1, "b"), (0, "a"), (1, "a"), (0, "c"), (0, "a")] {
            top.take(shard, value, 3);
        }
        let (found, error) = top.read(2, 3);
        let found: Vec<_> = found.iter().map(|frequent| (&*frequent.value, frequent.count)).collect();
        assert_eq!((found, error), (vec![("a", 3), ("b", 1)], 0));
    }

    proptest! {
        #[test]
        fn beyond_it_the_error_is_bounded(values in prop::collection::vec((0_u16..3, 0_u32..60), 0..600)) {
            const CAPACITY: usize = 10;
            let (mut top, mut exact) = (Top::default(), BTreeMap::new());
            for (shard, value) in &values {
                // Small numbers are frequent.
                let value = value * value / 60;
                top.take(*shard, &value.to_string(), CAPACITY);
                *exact.entry(value.to_string()).or_insert(0_u64) += 1;
            }
            let (found, error) = top.read(1_000, CAPACITY);
            prop_assert!(error <= (values.len() / CAPACITY) as u64);
            for (value, count) in exact {
                let seen = found.iter().find(|frequent| *frequent.value == *value).map_or(0, |frequent| frequent.count);
                prop_assert!(seen <= count && count <= seen + error, "{} {} {} {}", value, count, seen, error);
            }
        }

        #[test]
        fn the_order_between_shards_does_not_matter(values in prop::collection::vec((0_u16..3, 0_u32..60), 0..600)) {
            let of = |values: &[(u16, u32)]| {
                let mut top = Top::default();
                values.iter().for_each(|(shard, value)| top.take(*shard, &value.to_string(), 5));
                top
            };
            let mut by_shard = values.clone();
            by_shard.sort_by_key(|(shard, _)| *shard);
            prop_assert_eq!(of(&by_shard), of(&values));
            let mut out = Writer::default();
            of(&values).save(&mut out);
            let bytes = out.into_bytes();
            prop_assert_eq!(Top::restore(&mut Reader::new(&bytes)).unwrap(), of(&values));
        }
    }
}
