//! The fold: events in, results out, with a state that can be saved.

use event::{Origin, Position};

use super::codec::{Damaged, Reader, Writer};
use super::counts::{FoldCounts, LeftOut};
use super::group::{FoldedEvent, Key};
use super::result::{Emission, WindowResult};
use super::rules::{AggregateRules, TimeBasis};
use super::sessions::Sessions;
use super::time_windows::TimeWindows;
use super::watermark::Shards;
use super::window::Span;

/// The format of a saved state. Another one is rejected.
const VERSION: u8 = 1;
/// The last time that an event may have: the end of the year 9999, in microseconds.
const TIME_MAX: i64 = 253_402_300_799_999_999;

/// Why a saved state can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidState {
    /// It belongs to another aggregate, or to an earlier definition of this one: start from scratch.
    #[error("the saved state is of another definition of the aggregate: the windows start again")]
    OtherRules,
    /// It was written by another version of Forebay.
    #[error(
        "the saved state has format {0}, and this version of Forebay reads format {VERSION}: run the version that wrote it"
    )]
    OtherForm(u8),
    /// It is damaged.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

#[derive(Debug)]
enum Open {
    TimeWindows(TimeWindows),
    Sessions(Sessions),
}

/// One aggregate over all shards of an origin.
#[derive(Debug)]
pub struct Fold {
    rules: AggregateRules,
    origin: Origin,
    shards: Shards,
    open: Open,
    counts: FoldCounts,
    left_out: LeftOut,
    /// The key of the current event: its text is reused.
    key: Key,
}

impl Fold {
    /// An empty fold. `shards` are all shards that events come from: a window ends only after each has passed its end.
    #[must_use]
    pub fn new(rules: AggregateRules, origin: Origin, shards: &[u16]) -> Self {
        let open = match rules.span {
            Span::TimeWindows { size, hop } => Open::TimeWindows(TimeWindows::new(size, hop)),
            Span::Session { gap } => Open::Sessions(Sessions::new(gap)),
        };
        let (counts, left_out) = (FoldCounts::default(), LeftOut::default());
        Self { rules, origin, shards: Shards::new(shards), open, counts, left_out, key: Key::overflow() }
    }

    /// Adds an event of the type. The events of a shard must be in its order. An event that was added before is
    /// skipped, so after a restart it is harmless to begin too early. Times are microseconds since 1970, UTC. The
    /// payload must have passed [`json::check`].
    pub fn take(&mut self, position: Position, event_time: Option<i64>, received: i64, payload: &str) {
        let Some(shard) = self.shards.pass(position) else { return };
        let received = received.clamp(0, TIME_MAX);
        self.counts.events += 1;
        self.shards.received(position.shard, received);
        let time = match self.rules.time {
            // If the clock steps back, the time does not change.
            TimeBasis::Received => received.max(shard.watermark.unwrap_or(0)),
            TimeBasis::Event => event_time.unwrap_or(received),
        };
        let is_ahead = self.rules.time == TimeBasis::Event && time > received.saturating_add(self.rules.ahead);
        if is_ahead || !(0..=TIME_MAX).contains(&time) {
            self.counts.out_of_range += 1;
            self.left_out.out_of_range += 1;
            return;
        }
        let values = self.rules.reading.read(payload);
        self.key.set(self.rules.group_pointers.iter().map(|pointer| values[*pointer]));
        let close_time = shard.watermark.map(|watermark| watermark - self.rules.lateness);
        let event = FoldedEvent { key: &self.key, time, close_time, position, values: &values };
        let late_before = self.counts.late;
        let (rules, counts) = (&self.rules, &mut self.counts);
        match &mut self.open {
            Open::TimeWindows(timed) => timed.take(rules, &event, self.shards.watermark(), counts),
            Open::Sessions(sessions) => sessions.take(rules, &event, counts),
        }
        if self.counts.late > late_before {
            self.left_out.late += 1;
            let lag = shard.watermark.map_or(0, |watermark| watermark.saturating_sub(time));
            self.left_out.lag = self.left_out.lag.max(lag);
        }
        let watermark = if self.rules.time == TimeBasis::Event { time.min(received) } else { time };
        self.advance(position.shard, watermark);
    }

    /// Skips an event of another type: everything before it is seen.
    pub fn pass(&mut self, position: Position) {
        let _ = self.shards.pass(position);
    }

    /// Adds a tick, which is in the journal like an event: the shard has reached this time.
    pub fn tick(&mut self, position: Position, time: i64) {
        if self.shards.pass(position).is_some() {
            self.advance(position.shard, time.clamp(0, TIME_MAX));
        }
    }

    fn advance(&mut self, shard: u16, time: i64) {
        let before = self.shards.watermark();
        self.shards.advance(shard, time);
        let now = self.shards.watermark();
        if let (Open::TimeWindows(timed), Some(now)) = (&mut self.open, now.filter(|now| Some(*now) > before)) {
            timed.advance(&self.rules, before, now);
        }
    }

    /// Expects events from one more shard.
    pub fn add_shard(&mut self, shard: u16) {
        self.shards.add(shard);
    }

    /// The ticks to write into the journals of shards, so windows of an idle type end: the shard, and the time that it
    /// has reached. `now` is the clock's time. Empty if no window would end.
    #[must_use]
    pub fn ticks(&self, now: i64) -> Vec<(u16, i64)> {
        let next = match &self.open {
            Open::TimeWindows(timed) => timed.next(),
            Open::Sessions(sessions) => sessions.next().map(|next| next + self.rules.lateness),
        };
        let ticks = self.shards.ticks(now.clamp(0, TIME_MAX), self.rules.idle_timeout);
        let ends = |(_, time): &(u16, i64)| next.is_some_and(|next| next <= *time);
        ticks.into_iter().filter(ends).collect()
    }

    /// The ticks that close all open windows, independently of the clock, with the shards to whose journals they belong. Later events of these
    /// windows are late. Empty if no tick would close a window.
    #[must_use]
    pub fn closing_ticks(&self) -> Vec<(u16, i64)> {
        let last = match &self.open {
            Open::TimeWindows(timed) => timed.last(&self.rules),
            Open::Sessions(sessions) => sessions.last().map(|last| last + self.rules.lateness),
        };
        let Some(last) = last.map(|last| last.min(TIME_MAX)) else { return Vec::new() };
        self.shards.lagging(last).map(|shard| (shard, last)).collect()
    }

    /// Emits results that are due, up to this number (the sessions of one group stay together): call it until it emits
    /// none.
    pub fn results(&mut self, most: usize) -> Vec<WindowResult> {
        let close_time = self.close_time();
        let mut out = Emission { rules: &self.rules, origin: self.origin, most, results: Vec::new() };
        match &mut self.open {
            Open::TimeWindows(timed) => timed.emit(self.shards.watermark(), &mut out),
            Open::Sessions(sessions) => sessions.emit(close_time, &mut out),
        }
        self.counts.results += out.results.len() as u64;
        out.results
    }

    fn close_time(&self) -> Option<i64> {
        self.shards.watermark().map(|watermark| watermark - self.rules.lateness)
    }

    /// Whether [`Fold::results`] has something to emit.
    #[must_use]
    pub fn has_results(&self) -> bool {
        match &self.open {
            Open::TimeWindows(timed) => timed.has_due(),
            Open::Sessions(sessions) => sessions.next().is_some_and(|next| Some(next) <= self.close_time()),
        }
    }

    /// The type of the results, and their definition.
    #[must_use]
    pub const fn rules(&self) -> &AggregateRules {
        &self.rules
    }

    /// The counts of events.
    #[must_use]
    pub const fn counts(&self) -> FoldCounts {
        self.counts
    }

    /// The events that were left out since [`Fold::take_left_out`] was called.
    #[must_use]
    pub const fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The events that were left out since the last call.
    pub fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.left_out)
    }

    /// The last position of each shard that is in the state: earlier ones are not needed after the state is saved.
    pub fn positions(&self) -> impl Iterator<Item = Position> {
        self.shards.positions()
    }

    /// The watermark: all events up to it have arrived, except late ones.
    #[must_use]
    pub const fn watermark(&self) -> Option<i64> {
        self.shards.watermark()
    }

    /// Windows that may still change; for sessions the number of open ones.
    #[must_use]
    pub fn windows(&self) -> usize {
        match &self.open {
            Open::TimeWindows(timed) => timed.windows(),
            Open::Sessions(sessions) => sessions.groups(),
        }
    }

    /// Groups of all open windows.
    #[must_use]
    pub fn groups(&self) -> usize {
        match &self.open {
            Open::TimeWindows(timed) => timed.groups(),
            Open::Sessions(sessions) => sessions.groups(),
        }
    }

    /// Bytes of the state in memory, as they count against the budget.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.open {
            Open::TimeWindows(timed) => timed.memory_bytes(),
            Open::Sessions(sessions) => sessions.memory_bytes(),
        }
    }

    /// The state as bytes, for [`Fold::restore`]. They have no checksum: the file that they are written to has one.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.byte(VERSION);
        out.raw(&self.rules.fingerprint.to_le_bytes());
        out.raw(&self.origin.0);
        let counts = self.counts;
        for count in [
            counts.events,
            counts.late,
            counts.parts,
            counts.out_of_range,
            counts.overflowed,
            counts.unused,
            counts.results,
        ] {
            out.unsigned(count);
        }
        self.shards.save(&mut out);
        match &self.open {
            Open::TimeWindows(timed) => timed.save(&mut out),
            Open::Sessions(sessions) => sessions.save(&mut out),
        }
        out.into_bytes()
    }

    /// The saved fold. With the events after its positions it produces the same results, byte for byte.
    ///
    /// # Errors
    /// [`InvalidState`] says whether another definition, another version or damage is the reason. It does not panic
    /// with any bytes.
    pub fn restore(rules: AggregateRules, bytes: &[u8]) -> Result<Self, InvalidState> {
        let mut from = Reader::new(bytes);
        match from.byte()? {
            VERSION => {}
            other => return Err(InvalidState::OtherForm(other)),
        }
        if from.raw(8)? != rules.fingerprint.to_le_bytes() {
            return Err(InvalidState::OtherRules);
        }
        let origin = Origin(from.raw(16)?.try_into().map_err(|_| Damaged)?);
        let counts = FoldCounts {
            events: from.unsigned()?,
            late: from.unsigned()?,
            parts: from.unsigned()?,
            out_of_range: from.unsigned()?,
            overflowed: from.unsigned()?,
            unused: from.unsigned()?,
            results: from.unsigned()?,
        };
        let shards = Shards::restore(&mut from)?;
        let open = match rules.span {
            Span::TimeWindows { size, hop } => Open::TimeWindows(TimeWindows::restore(size, hop, &rules, &mut from)?),
            Span::Session { gap } => Open::Sessions(Sessions::restore(gap, &rules, &mut from)?),
        };
        from.end()?;
        Ok(Self { rules, origin, shards, open, counts, left_out: LeftOut::default(), key: Key::overflow() })
    }
}
