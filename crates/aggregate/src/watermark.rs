//! The watermarks of the shards and of the aggregate.
//!
//! A shard's watermark is the greatest min(event time, received time) of its events. The event's own shard, in which
//! the order is fixed, decides whether it is too late; and nothing ends before the least of all watermarks has passed
//! it. So the order between the shards does not matter.

use std::collections::BTreeMap;

use event::Position;

use super::codec::{Damaged, Reader, Writer};

/// One shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shard {
    /// The last position that was seen.
    sequence: u64,
    pub(super) watermark: Option<i64>,
    /// When its last event was received.
    received: Option<i64>,
}

/// All shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shards {
    of: BTreeMap<u16, Shard>,
    /// The least watermark, once each shard has one. It never falls.
    watermark: Option<i64>,
    /// When the first event was received.
    begun: Option<i64>,
}

impl Shards {
    pub(super) fn new(shards: &[u16]) -> Self {
        Self { of: shards.iter().map(|shard| (*shard, Shard::default())).collect(), ..Self::default() }
    }

    /// Adds a new shard: in it no event is late for a window that is not over.
    pub(super) fn add(&mut self, shard: u16) {
        let watermark = self.watermark;
        self.of.entry(shard).or_insert(Shard { watermark, ..Shard::default() });
    }

    /// The shard of an event, unless the event was added before.
    pub(super) fn pass(&mut self, position: Position) -> Option<Shard> {
        self.add(position.shard);
        let shard = self.of.get_mut(&position.shard)?;
        if position.sequence <= shard.sequence {
            return None;
        }
        shard.sequence = position.sequence;
        Some(*shard)
    }

    /// An event of the type was received in the shard.
    pub(super) fn received(&mut self, shard: u16, received: i64) {
        self.begun = Some(self.begun.map_or(received, |begun| begun.min(received)));
        if let Some(shard) = self.of.get_mut(&shard) {
            shard.received = shard.received.max(Some(received));
        }
    }

    /// The shard has reached this time.
    pub(super) fn advance(&mut self, shard: u16, time: i64) {
        if let Some(shard) = self.of.get_mut(&shard)
            && shard.watermark.is_none_or(|watermark| watermark < time)
        {
            let held_all_up = shard.watermark == self.watermark || shard.watermark.is_none();
            shard.watermark = Some(time);
            if held_all_up {
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        // None is less than any time.
        let least = self.of.values().map(|shard| shard.watermark).min().flatten();
        self.watermark = self.watermark.max(least);
    }

    pub(super) const fn watermark(&self) -> Option<i64> {
        self.watermark
    }

    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        self.of.iter().map(|(shard, state)| Position { shard: *shard, sequence: state.sequence })
    }

    /// The ticks that let windows up to `now` end: idle shards advance to the least of the others, and if all are idle
    /// to the present.
    pub(super) fn ticks(&self, now: i64, idle_timeout: i64) -> Vec<(u16, i64)> {
        let since = now - idle_timeout;
        let is_idle = |shard: &Shard| shard.received.or(self.begun).is_none_or(|received| received <= since);
        let busy = self.of.values().filter(|shard| !is_idle(shard)).map(|shard| shard.watermark).min();
        let target = match busy {
            None => now,
            Some(Some(least)) => least,
            // A shard that is not idle and has no watermark: it may still bring any time.
            Some(None) => return Vec::new(),
        };
        let lagging = self.of.iter().filter(|(_, shard)| is_idle(shard) && shard.watermark < Some(target));
        lagging.map(|(shard, _)| (*shard, target)).collect()
    }

    /// The shards whose watermark is before this time.
    pub(super) fn lagging(&self, time: i64) -> impl Iterator<Item = u16> {
        self.of.iter().filter(move |(_, shard)| shard.watermark < Some(time)).map(|(shard, _)| *shard)
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.option(self.watermark, Writer::signed);
        out.option(self.begun, Writer::signed);
        out.count(self.of.len());
        for (number, shard) in &self.of {
            out.unsigned((*number).into());
            out.unsigned(shard.sequence);
            out.option(shard.watermark, Writer::signed);
            out.option(shard.received, Writer::signed);
        }
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut shards =
            Self { watermark: from.option(Reader::time)?, begun: from.option(Reader::time)?, of: BTreeMap::new() };
        for _ in 0..from.count()? {
            let number = u16::try_from(from.unsigned()?).map_err(|_| Damaged)?;
            let sequence = from.unsigned()?;
            let (watermark, received) = (from.option(Reader::time)?, from.option(Reader::time)?);
            shards.of.insert(number, Shard { sequence, watermark, received });
        }
        Ok(shards)
    }
}
