//! The groups of one window: within their share of the memory, and what is still to be emitted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::codec::{Damaged, Reader, Writer};
use super::counts::FoldCounts;
use super::group::{FoldedEvent, Group, Key};
use super::result::{Emission, WindowPart};
use super::rules::AggregateRules;

/// The progress of a pass through all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Sweep {
    /// There is none.
    #[default]
    Idle,
    /// It begins.
    Begun,
    /// All groups up to this one are emitted.
    After(Key),
}

/// The groups.
///
/// If they use too much memory, the last groups in the order of keys move into the overflow group, and so do all that
/// follow them in this order later. So the remaining groups are complete. Which ones remain depends on the events and
/// not on their order.
#[derive(Debug, Default)]
pub(super) struct Pane {
    groups: BTreeMap<Key, Group>,
    /// The cost of the groups, without the overflow group.
    bytes: usize,
    /// The first key for which there was no room.
    full_from: Option<Key>,
    /// Whether the window has ended: from then on each change of a group is emitted.
    pub(super) closed: bool,
    sweep: Sweep,
    /// Groups that changed after the sweep of a closed window.
    changed: BTreeSet<Key>,
    /// Groups that were emitted before they moved into the overflow group.
    withdrawn: BTreeSet<Key>,
}

impl Pane {
    pub(super) fn new(closed: bool) -> Self {
        Self { closed, ..Self::default() }
    }

    pub(super) fn take(&mut self, rules: &AggregateRules, event: &FoldedEvent<'_>, counts: &mut FoldCounts) {
        let key = event.key;
        let has_room = self.full_from.as_ref().is_none_or(|full_from| key < full_from);
        if key.is_overflow() || !has_room {
            counts.overflowed += 1;
            counts.unused += self.overflow(rules).take(rules, event);
            return self.note(&Key::overflow());
        }
        counts.unused += self.take_in_group(rules, event);
        self.note(key);
        while self.bytes > rules.window_bytes {
            self.evict(rules);
        }
    }

    fn take_in_group(&mut self, rules: &AggregateRules, event: &FoldedEvent<'_>) -> u64 {
        let key = event.key;
        if let Some(group) = self.groups.get_mut(key) {
            let before = group.bytes(key);
            let unused = group.take(rules, event);
            self.bytes += group.bytes(key) - before;
            return unused;
        }
        let mut group = Group::new(rules);
        let unused = group.take(rules, event);
        self.bytes += group.bytes(key);
        self.groups.insert(key.clone(), group);
        unused
    }

    fn overflow(&mut self, rules: &AggregateRules) -> &mut Group {
        self.groups.entry(Key::overflow()).or_insert_with(|| Group::new(rules))
    }

    /// Moves the last group into the overflow group.
    fn evict(&mut self, rules: &AggregateRules) {
        let last = self.groups.range(..Key::overflow()).next_back().map(|(key, _)| key.clone());
        let Some((key, group)) = last.and_then(|key| self.groups.remove_entry(&key)) else {
            self.bytes = 0;
            return;
        };
        self.bytes -= group.bytes(&key);
        self.overflow(rules).merge(&group);
        self.note(&Key::overflow());
        self.changed.remove(&key);
        if group.emitted > 0 {
            self.withdrawn.insert(key.clone());
        }
        self.full_from = Some(key);
    }

    /// Notes that a group of a closed window has changed, unless the sweep has yet to reach it.
    fn note(&mut self, key: &Key) {
        let is_swept = match &self.sweep {
            Sweep::Idle => true,
            Sweep::Begun => false,
            Sweep::After(last) => key <= last,
        };
        if self.closed && is_swept && !self.changed.contains(key) {
            self.changed.insert(key.clone());
        }
    }

    /// Emits all groups that changed since they were emitted, from the first one on.
    pub(super) fn begin_sweep(&mut self) {
        self.sweep = Sweep::Begun;
        self.changed.clear();
    }

    /// Whether there is something to emit.
    pub(super) fn is_due(&self) -> bool {
        self.sweep != Sweep::Idle || !self.changed.is_empty() || !self.withdrawn.is_empty()
    }

    /// Emits what is due, while there is room.
    pub(super) fn emit(&mut self, place: WindowPart, out: &mut Emission<'_>) {
        while !out.is_full()
            && let Some(key) = self.withdrawn.pop_first()
        {
            out.withdrawn(place, &key);
        }
        self.emit_sweep(place, out);
        while !out.is_full()
            && let Some(key) = self.changed.pop_first()
        {
            if let Some(group) = self.groups.get_mut(&key) {
                emit_group(place, &key, group, out);
            }
        }
    }

    fn emit_sweep(&mut self, place: WindowPart, out: &mut Emission<'_>) {
        let after = match &self.sweep {
            Sweep::Idle => return,
            Sweep::Begun => Bound::Unbounded,
            Sweep::After(key) => Bound::Excluded(key),
        };
        let mut last = None;
        for (key, group) in self.groups.range_mut::<Key, _>((after, Bound::Unbounded)) {
            if out.is_full() {
                // Nothing is due after the last one: it also skips the groups that did not change.
                self.sweep = last.map_or_else(|| self.sweep.clone(), |key: &Key| Sweep::After(key.clone()));
                return;
            }
            emit_group(place, key, group, out);
            last = Some(key);
        }
        self.sweep = Sweep::Idle;
    }

    /// Bytes of the groups, including the overflow group and what is to be emitted.
    pub(super) fn memory_bytes(&self) -> usize {
        let overflow = Key::overflow();
        let waiting = (self.changed.len() + self.withdrawn.len()) * 2 * size_of::<Key>();
        size_of::<Self>() + self.bytes + waiting + self.groups.get(&overflow).map_or(0, |group| group.bytes(&overflow))
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.flag(self.closed);
        out.option(self.full_from.as_ref(), |out, key| key.save(out));
        out.byte(match self.sweep {
            Sweep::Idle => 0,
            Sweep::Begun => 1,
            Sweep::After(_) => 2,
        });
        if let Sweep::After(key) = &self.sweep {
            key.save(out);
        }
        for keys in [&self.changed, &self.withdrawn] {
            out.count(keys.len());
            keys.iter().for_each(|key| key.save(out));
        }
        out.count(self.groups.len());
        for (key, group) in &self.groups {
            key.save(out);
            out.unsigned(group.emitted);
            group.save(out);
        }
    }

    pub(super) fn restore(rules: &AggregateRules, from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let closed = from.flag()?;
        let full_from = from.option(Key::restore)?;
        let sweep = match from.byte()? {
            0 => Sweep::Idle,
            1 => Sweep::Begun,
            2 => Sweep::After(Key::restore(from)?),
            _ => return Err(Damaged),
        };
        let mut pane = Self { closed, full_from, sweep, ..Self::default() };
        for keys in [&mut pane.changed, &mut pane.withdrawn] {
            for _ in 0..from.count()? {
                keys.insert(Key::restore(from)?);
            }
        }
        for _ in 0..from.count()? {
            let key = Key::restore(from)?;
            let emitted = from.unsigned()?;
            let mut group = Group::restore(rules, from)?;
            group.emitted = emitted;
            if !key.is_overflow() {
                pane.bytes += group.bytes(&key);
            }
            pane.groups.insert(key, group);
        }
        Ok(pane)
    }
}

/// Emits a group, if it changed since it was emitted.
fn emit_group(place: WindowPart, key: &Key, group: &mut Group, out: &mut Emission<'_>) {
    if group.count > group.emitted {
        out.group(place, key, group);
        group.emitted = group.count;
    }
}
