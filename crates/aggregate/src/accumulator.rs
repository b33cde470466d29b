//! The values that a group keeps for its measures.

use std::cmp::Ordering;

use event::Position;
use limits::AGGREGATE_VALUE_BYTES_MAX;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{Damaged, Reader, Writer};
use super::distinct::Distinct;
use super::extract::compact;
use super::number::Number;
use super::quantiles::Quantiles;
use super::sample::{Sample, Side};
use super::sum::Sum;
use super::top::Top;

/// The kinds. Measures that need the same kind at the same pointer share one accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Whether and how often there was a value.
    Present,
    /// Sum and mean.
    Sum,
    /// The least number, or the greatest.
    Least,
    Greatest,
    /// A value by time.
    Sample(Side),
    /// The number of distinct values.
    Distinct,
    /// The distribution of numbers.
    Quantiles,
    /// The most frequent values, exact up to this many different ones.
    Top(usize),
}

/// An accumulator of a group.
#[derive(Clone, Debug)]
pub(super) enum Accumulator {
    Present(u64),
    Sum(Sum),
    Least(Option<Number>),
    Greatest(Option<Number>),
    Sample(Side, Option<Box<Sample>>),
    Distinct(Distinct),
    Quantiles(Quantiles),
    Top(usize, Top),
}

impl Accumulator {
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Present => Self::Present(0),
            Kind::Sum => Self::Sum(Sum::default()),
            Kind::Least => Self::Least(None),
            Kind::Greatest => Self::Greatest(None),
            Kind::Sample(side) => Self::Sample(side, None),
            Kind::Distinct => Self::Distinct(Distinct::default()),
            Kind::Quantiles => Self::Quantiles(Quantiles::default()),
            Kind::Top(capacity) => Self::Top(capacity, Top::default()),
        }
    }

    /// Adds a value that is not null. Returns whether the value is of a usable type: a string has no sum.
    pub(super) fn take(&mut self, time: i64, position: Position, value: &str) -> bool {
        match self {
            Self::Present(count) => *count += 1,
            Self::Distinct(distinct) => distinct.take(xxh3_64(compact(value).as_bytes())),
            Self::Sample(..) | Self::Top(..) => return self.take_text(time, position, value),
            Self::Sum(_) | Self::Least(_) | Self::Greatest(_) | Self::Quantiles(_) => {
                let Some(number) = Number::from_json(value) else { return false };
                self.take_number(number);
            }
        }
        true
    }

    fn take_text(&mut self, time: i64, position: Position, value: &str) -> bool {
        let value = compact(value);
        if value.len() > AGGREGATE_VALUE_BYTES_MAX {
            return false;
        }
        match self {
            Self::Sample(side, kept) => side.keep(kept, time, position, &value),
            Self::Top(capacity, top) => top.take(position.shard, &value, *capacity),
            _ => {}
        }
        true
    }

    fn take_number(&mut self, number: Number) {
        match self {
            Self::Sum(sum) => sum.take(number),
            Self::Least(kept) => keep(kept, number, Ordering::Less),
            Self::Greatest(kept) => keep(kept, number, Ordering::Greater),
            Self::Quantiles(quantiles) => quantiles.take(number.to_double()),
            _ => {}
        }
    }

    /// Adds the content of another accumulator of the same kind.
    pub(super) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Present(mine), Self::Present(theirs)) => *mine = mine.saturating_add(*theirs),
            (Self::Sum(mine), Self::Sum(theirs)) => mine.merge(theirs),
            (Self::Least(mine), Self::Least(Some(theirs))) => keep(mine, *theirs, Ordering::Less),
            (Self::Greatest(mine), Self::Greatest(Some(theirs))) => keep(mine, *theirs, Ordering::Greater),
            (Self::Sample(side, mine), Self::Sample(_, theirs)) => side.merge(mine, theirs.as_deref()),
            (Self::Distinct(mine), Self::Distinct(theirs)) => mine.merge(theirs),
            (Self::Quantiles(mine), Self::Quantiles(theirs)) => mine.merge(theirs),
            (Self::Top(capacity, mine), Self::Top(_, theirs)) => mine.merge(theirs, *capacity),
            _ => {}
        }
    }

    /// Bytes on the heap: they depend on the values, not on the order between shards, and only ever grow.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Present(_) | Self::Least(_) | Self::Greatest(_) | Self::Sample(_, None) => 0,
            Self::Sample(_, Some(sample)) => sample.bytes(),
            Self::Sum(sum) => sum.heap_bytes(),
            Self::Distinct(distinct) => distinct.heap_bytes(),
            Self::Quantiles(quantiles) => quantiles.heap_bytes(),
            Self::Top(_, top) => top.heap_bytes(),
        }
    }

    pub(super) fn save(&self, out: &mut Writer) {
        match self {
            Self::Present(count) => out.unsigned(*count),
            Self::Sum(sum) => sum.save(out),
            Self::Least(number) | Self::Greatest(number) => out.option(*number, save_number),
            Self::Sample(_, sample) => out.option(sample.as_ref(), |out, sample| sample.save(out)),
            Self::Distinct(distinct) => distinct.save(out),
            Self::Quantiles(quantiles) => quantiles.save(out),
            Self::Top(_, top) => top.save(out),
        }
    }

    pub(super) fn restore(kind: Kind, from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(match kind {
            Kind::Present => Self::Present(from.unsigned()?),
            Kind::Sum => Self::Sum(Sum::restore(from)?),
            Kind::Least => Self::Least(from.option(restore_number)?),
            Kind::Greatest => Self::Greatest(from.option(restore_number)?),
            Kind::Sample(side) => Self::Sample(side, from.option(Sample::restore)?.map(Box::new)),
            Kind::Distinct => Self::Distinct(Distinct::restore(from)?),
            Kind::Quantiles => Self::Quantiles(Quantiles::restore(from)?),
            Kind::Top(capacity) => Self::Top(capacity, Top::restore(from)?),
        })
    }
}

fn keep(kept: &mut Option<Number>, number: Number, wanted: Ordering) {
    if kept.is_none_or(|kept| number.order(kept) == wanted) {
        *kept = Some(number);
    }
}

fn save_number(out: &mut Writer, number: Number) {
    match number {
        Number::Int(number) => {
            out.flag(false);
            out.wide(number);
        }
        Number::Double(number) => {
            out.flag(true);
            out.raw(&number.to_le_bytes());
        }
    }
}

fn restore_number(from: &mut Reader<'_>) -> Result<Number, Damaged> {
    if from.flag()? { from.double().map(Number::Double) } else { from.wide().map(Number::Int) }
}
