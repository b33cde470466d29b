//! The first or the last value by event time.

use std::cmp::Ordering;

use event::Position;
use limits::AGGREGATE_VALUE_BYTES_MAX;

use super::codec::{Damaged, Reader, Writer};

/// A value with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    time: i64,
    position: Position,
    value: Box<str>,
    /// The length of the longest value so far: the charged bytes must not depend on when they are read.
    longest: usize,
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
    /// Keeps one of two. For equal times the position decides; and between origins, whose positions may be equal, the
    /// value.
    pub(super) fn keep(self, kept: &mut Option<Box<Sample>>, time: i64, position: Position, value: &str) {
        let order = kept
            .as_ref()
            .map(|kept| (time, position).cmp(&(kept.time, kept.position)).then_with(|| value.cmp(&kept.value)));
        let wanted = match self {
            Self::First => Ordering::Less,
            Self::Last => Ordering::Greater,
        };
        let longest = kept.as_ref().map_or(0, |kept| kept.longest).max(value.len());
        match kept {
            Some(kept) if order != Some(wanted) => kept.longest = longest,
            _ => *kept = Some(Box::new(Sample { time, position, value: value.into(), longest })),
        }
    }

    pub(super) fn merge(self, kept: &mut Option<Box<Sample>>, other: Option<&Sample>) {
        if let Some(other) = other {
            self.keep(kept, other.time, other.position, &other.value);
            if let Some(kept) = kept {
                kept.longest = kept.longest.max(other.longest);
            }
        }
    }
}

impl Sample {
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Bytes that are charged.
    pub(super) const fn bytes(&self) -> usize {
        size_of::<Self>() + self.longest
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.signed(self.time);
        out.unsigned(self.position.shard.into());
        out.unsigned(self.position.sequence);
        out.text(&self.value);
        out.count(self.longest);
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let time = from.time()?;
        let shard = u16::try_from(from.unsigned()?).map_err(|_| Damaged)?;
        let position = Position { shard, sequence: from.unsigned()? };
        let value = from.text()?.into();
        Ok(Self { time, position, value, longest: from.count_to(AGGREGATE_VALUE_BYTES_MAX)? })
    }
}
