//! The fold: events in, results out, and in between a state that can be saved.

use event::{Origin, Position};

use super::codec::{Damaged, Reader, Writer};
use super::counts::{FoldCounts, LeftOut};
use super::group::{Key, Taken};
use super::result::{Emission, WindowResult};
use super::rules::{AggregateRules, TimeBasis};
use super::sessions::Sessions;
use super::time_windows::TimeWindows;
use super::watermark::Shards;
use super::window::Span;

/// The form of a saved state. Another one is refused.
const VERSION: u8 = 1;
/// The last time that an event may have: the end of the year 9999, in microseconds.
const TIME_MAX: i64 = 253_402_300_799_999_999;

/// Why a saved state can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidState {
    /// It is of another aggregate, or of this one as it was configured before: begin anew.
    #[error("the saved state is of another definition of the aggregate")]
    OtherRules,
    /// It was written by another version of Forebay.
    #[error("the saved state has form {0}, and this version reads form {VERSION}")]
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
    /// The key of the event at hand: its text is used again.
    key: Key,
}

impl Fold {
    /// A fold that has seen nothing. `shards` are all those that events come from: nothing ends before each has come as far.
    #[must_use]
    pub fn new(rules: AggregateRules, origin: Origin, shards: &[u16]) -> Self {
        let open = match rules.span {
            Span::TimeWindows { size, hop } => Open::TimeWindows(TimeWindows::new(size, hop)),
            Span::Session { gap } => Open::Sessions(Sessions::new(gap)),
        };
        let (counts, left_out) = (FoldCounts::default(), LeftOut::default());
        Self { rules, origin, shards: Shards::new(shards), open, counts, left_out, key: Key::overflow() }
    }

    /// Takes an event of the type. Those of a shard come in its order; one that came already is passed over, so that after a
    /// restart it does no harm to begin too early. Times are microseconds since 1970, UTC. The payload must have passed
    /// [`json::check`].
    pub fn take(&mut self, position: Position, event_time: Option<i64>, received: i64, payload: &str) {
        let Some(shard) = self.shards.pass(position) else { return };
        let received = received.clamp(0, TIME_MAX);
        self.counts.taken += 1;
        self.shards.received(position.shard, received);
        let time = match self.rules.time {
            // A clock that steps back stands still.
            TimeBasis::Received => received.max(shard.watermark.unwrap_or(0)),
            TimeBasis::Event => event_time.unwrap_or(received),
        };
        let is_ahead = self.rules.time == TimeBasis::Event && time > received.saturating_add(self.rules.ahead);
        if is_ahead || !(0..=TIME_MAX).contains(&time) {
            self.counts.misdated += 1;
            self.left_out.misdated += 1;
            return;
        }
        let values = self.rules.reading.read(payload);
        self.key.set(self.rules.group_pointers.iter().map(|pointer| values[*pointer]));
        let close_time = shard.watermark.map(|watermark| watermark - self.rules.lateness);
        let taken = Taken { key: &self.key, time, close_time, position, values: &values };
        let late_before = self.counts.late;
        let (rules, counts) = (&self.rules, &mut self.counts);
        match &mut self.open {
            Open::TimeWindows(timed) => timed.take(rules, &taken, self.shards.watermark(), counts),
            Open::Sessions(sessions) => sessions.take(rules, &taken, counts),
        }
        if self.counts.late > late_before {
            self.left_out.late += 1;
            let behind = shard.watermark.map_or(0, |watermark| watermark.saturating_sub(time));
            self.left_out.behind = self.left_out.behind.max(behind);
        }
        let watermark = if self.rules.time == TimeBasis::Event { time.min(received) } else { time };
        self.advance(position.shard, watermark);
    }

    /// Passes over an event of another type: what comes before it is seen.
    pub fn pass(&mut self, position: Position) {
        let _ = self.shards.pass(position);
    }

    /// Takes a tick, which stands in the journal like an event: the shard has come as far as this time.
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

    /// Counts on events of one more shard.
    pub fn add_shard(&mut self, shard: u16) {
        self.shards.add(shard);
    }

    /// The ticks to write into the journals of shards, so that windows of a quiet type end: which shard, and how far it has
    /// come. `now` is the clock's time. None where no window would end by it.
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
        self.shards.behind(last).map(|shard| (shard, last)).collect()
    }

    /// Gives out results that are due, at most so many (the sessions of one group come together): call it until it gives out
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

    /// Whether [`Fold::results`] has something to give out.
    #[must_use]
    pub fn has_results(&self) -> bool {
        match &self.open {
            Open::TimeWindows(timed) => timed.has_due(),
            Open::Sessions(sessions) => sessions.next().is_some_and(|next| Some(next) <= self.close_time()),
        }
    }

    /// The type of the results, and how they are made.
    #[must_use]
    pub const fn rules(&self) -> &AggregateRules {
        &self.rules
    }

    /// What became of the events.
    #[must_use]
    pub const fn counts(&self) -> FoldCounts {
        self.counts
    }

    /// What was left out since [`Fold::take_left_out`] was called.
    #[must_use]
    pub const fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// What was left out since the last call.
    pub fn take_left_out(&mut self) -> LeftOut {
        std::mem::take(&mut self.left_out)
    }

    /// The last position of each shard that is in the state: what comes before it isn't needed any more once the state is saved.
    pub fn positions(&self) -> impl Iterator<Item = Position> {
        self.shards.positions()
    }

    /// Up to when everything has come, late events apart.
    #[must_use]
    pub const fn watermark(&self) -> Option<i64> {
        self.shards.watermark()
    }

    /// Windows that may still change; of sessions as many as are open.
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

    /// Bytes of the state in memory, as they are counted against the budget.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.open {
            Open::TimeWindows(timed) => timed.memory_bytes(),
            Open::Sessions(sessions) => sessions.memory_bytes(),
        }
    }

    /// The state as bytes, for [`Fold::restore`]. They have no checksum: the file that they go into has one.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.byte(VERSION);
        out.raw(&self.rules.fingerprint.to_le_bytes());
        out.raw(&self.origin.0);
        let counts = self.counts;
        for count in
            [counts.taken, counts.late, counts.parts, counts.misdated, counts.overflowed, counts.unused, counts.results]
        {
            out.unsigned(count);
        }
        self.shards.save(&mut out);
        match &self.open {
            Open::TimeWindows(timed) => timed.save(&mut out),
            Open::Sessions(sessions) => sessions.save(&mut out),
        }
        out.into_bytes()
    }

    /// The fold that was saved. With the events behind its positions it goes on to the same results, byte for byte.
    ///
    /// # Errors
    /// [`InvalidState`] says whether another definition, another version or damage is the reason. No bytes make it panic.
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
            taken: from.unsigned()?,
            late: from.unsigned()?,
            parts: from.unsigned()?,
            misdated: from.unsigned()?,
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
