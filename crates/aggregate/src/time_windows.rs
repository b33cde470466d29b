//! Windows that are fixed in time: which of them an event goes to, when they end, and when no event can arrive any
//! longer.

use std::collections::{BTreeMap, BTreeSet};

use super::codec::{Damaged, Reader, Writer};
use super::counts::FoldCounts;
use super::group::FoldedEvent;
use super::pane::Pane;
use super::result::{Emission, WindowPart};
use super::rules::{AggregateRules, Emit, Late, PART_WINDOWS};
use super::window::starts;

/// A window, or a part of one: the events that were too late for the window itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WindowKey {
    start: i64,
    part: u32,
}

/// The open windows.
#[derive(Debug)]
pub(super) struct TimeWindows {
    size: i64,
    hop: i64,
    panes: BTreeMap<WindowKey, Pane>,
    /// Windows with something to emit.
    due: BTreeSet<WindowKey>,
    /// The watermark at which the next one ends, or is over permanently.
    next_close: i64,
    next_over: i64,
}

const NEVER: i64 = i64::MAX;

impl TimeWindows {
    pub(super) fn new(size: i64, hop: i64) -> Self {
        Self { size, hop, panes: BTreeMap::new(), due: BTreeSet::new(), next_close: NEVER, next_over: NEVER }
    }

    /// Adds an event to each window that contains its time. `close_time` is that of the event's shard before the event,
    /// `watermark` that of all shards.
    pub(super) fn take(
        &mut self,
        rules: &AggregateRules,
        event: &FoldedEvent<'_>,
        watermark: Option<i64>,
        counts: &mut FoldCounts,
    ) {
        for start in starts(self.size, self.hop, event.time) {
            let Some(window) = self.window_for(rules, start, event.close_time) else {
                counts.late += 1;
                continue;
            };
            counts.parts += u64::from(window.part > 0);
            let (close_at, over_at) = (self.close_at(rules, window), self.over_at(rules, window));
            let has_ended = watermark.is_some_and(|watermark| watermark >= close_at);
            let pane = self.panes.entry(window).or_insert_with(|| Pane::new(has_ended));
            if !pane.closed {
                self.next_close = self.next_close.min(close_at);
            }
            self.next_over = self.next_over.min(over_at);
            pane.take(rules, event, counts);
            if pane.is_due() {
                self.due.insert(window);
            }
        }
    }

    /// The window that begins at `start`; if it is over for the event's shard, the part that accepts events now.
    fn window_for(&self, rules: &AggregateRules, start: i64, close_time: Option<i64>) -> Option<WindowKey> {
        let since_end = close_time.map(|close_time| close_time - (start + self.size)).filter(|since| *since >= 0);
        let Some(since_end) = since_end else { return Some(WindowKey { start, part: 0 }) };
        if rules.late == Late::Count || since_end >= PART_WINDOWS * self.hop {
            return None;
        }
        let part = u32::try_from(since_end / self.part_length(rules) + 1).ok()?;
        Some(WindowKey { start, part })
    }

    /// For how long a part accepts events.
    fn part_length(&self, rules: &AggregateRules) -> i64 {
        rules.lateness.max(self.hop)
    }

    /// The watermark at which a window's result is emitted first.
    fn close_at(&self, rules: &AggregateRules, window: WindowKey) -> i64 {
        match rules.emit {
            Emit::Close if window.part == 0 => window.start + self.size,
            _ => self.over_at(rules, window),
        }
    }

    /// The watermark from which on no event can arrive for a window.
    fn over_at(&self, rules: &AggregateRules, window: WindowKey) -> i64 {
        window.start + self.size + i64::from(window.part) * self.part_length(rules) + rules.lateness
    }

    /// The watermark has advanced from one time to another.
    pub(super) fn advance(&mut self, rules: &AggregateRules, before: Option<i64>, now: i64) {
        if let Some(early) = rules.early
            && before.is_some_and(|before| before.div_euclid(early) < now.div_euclid(early))
        {
            self.sweep_where(|_| true);
        }
        if now < self.next_close {
            return;
        }
        let ended: BTreeSet<WindowKey> =
            self.panes.keys().copied().filter(|window| self.close_at(rules, *window) <= now).collect();
        self.sweep_where(|window| ended.contains(window));
        self.panes.iter_mut().filter(|(window, _)| ended.contains(window)).for_each(|(_, pane)| pane.closed = true);
        let open = self.panes.iter().filter(|(_, pane)| !pane.closed);
        self.next_close = open.map(|(window, _)| self.close_at(rules, *window)).min().unwrap_or(NEVER);
    }

    /// Begins to emit of those windows that have not ended before.
    fn sweep_where(&mut self, is_chosen: impl Fn(&WindowKey) -> bool) {
        for (window, pane) in self.panes.iter_mut().filter(|(window, pane)| !pane.closed && is_chosen(window)) {
            pane.begin_sweep();
            self.due.insert(*window);
        }
    }

    /// Emits what is due, and forgets windows that are over.
    pub(super) fn emit(&mut self, watermark: Option<i64>, out: &mut Emission<'_>) {
        while !out.is_full()
            && let Some(window) = self.due.first().copied()
        {
            let place = WindowPart { start: window.start, end: window.start + self.size, part: window.part };
            let pane = self.panes.get_mut(&window);
            let is_due = pane.is_some_and(|pane| {
                pane.emit(place, out);
                pane.is_due()
            });
            if !is_due {
                self.due.remove(&window);
            }
        }
        self.forget(out.rules, watermark.unwrap_or(i64::MIN));
    }

    fn forget(&mut self, rules: &AggregateRules, watermark: i64) {
        if watermark < self.next_over {
            return;
        }
        let over: Vec<WindowKey> =
            self.panes.keys().copied().filter(|window| self.over_at(rules, *window) <= watermark).collect();
        for window in over {
            // A window with something to emit is forgotten after that.
            if !self.due.contains(&window) {
                self.panes.remove(&window);
            }
        }
        self.next_over = self.panes.keys().map(|window| self.over_at(rules, *window)).min().unwrap_or(NEVER);
    }

    /// The least watermark at which something would happen.
    pub(super) fn next(&self) -> Option<i64> {
        Some(self.next_close.min(self.next_over)).filter(|next| *next < NEVER)
    }

    /// The watermark at which all open windows end.
    pub(super) fn last(&self, rules: &AggregateRules) -> Option<i64> {
        self.panes.keys().map(|window| self.over_at(rules, *window)).max()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) fn windows(&self) -> usize {
        self.panes.len()
    }

    pub(super) fn groups(&self) -> usize {
        self.panes.values().map(Pane::groups).sum()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.panes.values().map(Pane::memory_bytes).sum()
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.count(self.panes.len());
        for (window, pane) in &self.panes {
            out.signed(window.start);
            out.unsigned(window.part.into());
            pane.save(out);
        }
    }

    pub(super) fn restore(size: i64, hop: i64, rules: &AggregateRules, from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut timed = Self::new(size, hop);
        for _ in 0..from.count()? {
            let start = from.time()?;
            let part = u32::try_from(from.unsigned()?).ok().filter(|part| i64::from(*part) <= PART_WINDOWS);
            let window = WindowKey { start, part: part.ok_or(Damaged)? };
            let pane = Pane::restore(rules, from)?;
            if pane.is_due() {
                timed.due.insert(window);
            }
            if !pane.closed {
                timed.next_close = timed.next_close.min(timed.close_at(rules, window));
            }
            timed.next_over = timed.next_over.min(timed.over_at(rules, window));
            timed.panes.insert(window, pane);
        }
        Ok(timed)
    }
}
