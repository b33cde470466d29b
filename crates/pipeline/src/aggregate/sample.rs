//! The first or the last value by event time.

use std::cmp::Ordering;

use event::Position;
use event::limits::AGGREGATE_VALUE_BYTES_MAX;

use super::codec::{Damaged, Reader, Writer};

/// A value with where it stood.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample {
    time: i64,
    position: Position,
    value: Box<str>,
}

/// Which of two samples is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The earlier one.
    First,
    /// The later one.
    Last,
}

impl Side {
    /// Keeps of two the one that is wanted. Of equal times the position decides; and between origins, whose positions may be
    /// equal, the value.
    pub(super) fn keep(self, kept: &mut Option<Box<Sample>>, time: i64, position: Position, value: &str) {
        let order = kept.as_ref().map(|kept| {
            (time, position).cmp(&(kept.time, kept.position)).then_with(|| value.cmp(&kept.value))
        });
        let wanted = match self {
            Self::First => Ordering::Less,
            Self::Last => Ordering::Greater,
        };
        if order.is_none_or(|order| order == wanted) {
            *kept = Some(Box::new(Sample { time, position, value: value.into() }));
        }
    }

    pub(super) fn merge(self, kept: &mut Option<Box<Sample>>, other: Option<&Sample>) {
        if let Some(other) = other {
            self.keep(kept, other.time, other.position, &other.value);
        }
    }
}

impl Sample {
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Bytes of any sample, as if its value had full length: what is charged must not depend on which one is kept.
    pub(super) const fn charged_bytes() -> usize {
        size_of::<Self>() + AGGREGATE_VALUE_BYTES_MAX
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.signed(self.time);
        out.unsigned(self.position.shard.into());
        out.unsigned(self.position.sequence);
        out.text(&self.value);
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let time = from.time()?;
        let shard = u16::try_from(from.unsigned()?).map_err(|_| Damaged)?;
        let position = Position { shard, sequence: from.unsigned()? };
        Ok(Self { time, position, value: from.text()?.into() })
    }
}
