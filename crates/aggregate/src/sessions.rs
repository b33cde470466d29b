//! Sessions: the events of a group that follow each other within a gap. A session is emitted once, when it is over:
//! before that, a late event may still join two sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::codec::{Damaged, Reader, Writer};
use super::counts::FoldCounts;
use super::group::{FoldedEvent, Group, Key};
use super::result::{Emission, WindowPart};
use super::rules::AggregateRules;

/// One session: it covers the times from its first event until a gap after its last one.
#[derive(Debug)]
struct Session {
    start: i64,
    last: i64,
    group: Group,
}

/// The sessions of a group, by time, with at least a gap between each other.
#[derive(Debug, Default)]
struct Timeline {
    sessions: Vec<Session>,
    /// Its time in the queue: not after the end of its first session.
    due: i64,
}

/// All sessions that are not over.
///
/// If they use too much memory, those of the last group in the order of keys move into the overflow group's, and so do
/// all that follow in this order later, until half of the memory is free again.
#[derive(Debug)]
pub(super) struct Sessions {
    gap: i64,
    timelines: BTreeMap<Key, Timeline>,
    /// Groups by when their first session may end. An entry with another time than the group's is obsolete.
    queue: BTreeSet<(i64, Key)>,
    bytes: usize,
    full_from: Option<Key>,
}

/// The cost of a session: as if it were the only one of its group, with a slot in the map and in the queue.
fn bytes(key: &Key, session: &Session) -> usize {
    const PLACES: usize = 2 * (size_of::<Timeline>() + size_of::<Session>() + size_of::<(i64, Key)>()) + 64;
    session.group.bytes(key) + PLACES + key.text().len()
}

impl Sessions {
    pub(super) fn new(gap: i64) -> Self {
        Self { gap, timelines: BTreeMap::new(), queue: BTreeSet::new(), bytes: 0, full_from: None }
    }

    /// Adds an event, unless it is older than the close time of its shard.
    pub(super) fn take(&mut self, rules: &AggregateRules, event: &FoldedEvent<'_>, counts: &mut FoldCounts) {
        let key = event.key;
        if event.close_time.is_some_and(|close_time| event.time < close_time) {
            counts.late += 1;
            return;
        }
        let mut group = Group::new(rules);
        counts.unused += group.take(rules, event);
        let session = Session { start: event.time, last: event.time, group };
        let has_room = self.full_from.as_ref().is_none_or(|full_from| key < full_from);
        if key.is_overflow() || !has_room {
            counts.overflowed += 1;
            self.join(&Key::overflow(), session);
            return;
        }
        self.join(key, session);
        while self.bytes > rules.window_bytes && self.evict() {}
    }

    /// Adds a session to those of a group: all that are less than a gap from each other become one.
    fn join(&mut self, key: &Key, mut session: Session) {
        if !self.timelines.contains_key(key) {
            self.timelines.insert(key.clone(), Timeline { sessions: Vec::new(), due: i64::MAX });
        }
        let Some(timeline) = self.timelines.get_mut(key) else { return };
        let from = timeline.sessions.partition_point(|other| other.last + self.gap <= session.start);
        let to = timeline.sessions.partition_point(|other| other.start < session.last + self.gap);
        let before: usize = timeline.sessions[from..to].iter().map(|other| bytes(key, other)).sum();
        for other in timeline.sessions.drain(from..to) {
            session.start = session.start.min(other.start);
            session.last = session.last.max(other.last);
            let mut merged = other.group;
            merged.merge(&session.group);
            session.group = merged;
        }
        let (after, end) = (bytes(key, &session), session.last + self.gap);
        timeline.sessions.insert(from, session);
        if end < timeline.due {
            timeline.due = end;
            self.queue.insert((end, key.clone()));
        }
        if !key.is_overflow() {
            self.bytes = self.bytes + after - before;
        }
    }

    /// Moves the sessions of the last group into the overflow group; false if there is none.
    fn evict(&mut self) -> bool {
        let last = self.timelines.range(..Key::overflow()).next_back().map(|(key, _)| key.clone());
        let Some((key, timeline)) = last.and_then(|key| self.timelines.remove_entry(&key)) else { return false };
        self.bytes -= timeline.sessions.iter().map(|session| bytes(&key, session)).sum::<usize>();
        timeline.sessions.into_iter().for_each(|session| self.join(&Key::overflow(), session));
        self.queue.remove(&(timeline.due, key.clone()));
        self.full_from = Some(key);
        true
    }

    /// Emits the sessions that are over, those of a group together.
    pub(super) fn emit(&mut self, close_time: Option<i64>, out: &mut Emission<'_>) {
        let close_time = close_time.unwrap_or(i64::MIN);
        while !out.is_full() && self.queue.first().is_some_and(|(due, _)| *due <= close_time) {
            if let Some((due, key)) = self.queue.pop_first() {
                self.emit_of(close_time, due, &key, out);
            }
        }
        if self.bytes < out.rules.window_bytes / 2 {
            self.full_from = None;
        }
    }

    fn emit_of(&mut self, close_time: i64, due: i64, key: &Key, out: &mut Emission<'_>) {
        let Some(timeline) = self.timelines.get_mut(key).filter(|timeline| timeline.due == due) else { return };
        let over = timeline.sessions.partition_point(|session| session.last + self.gap <= close_time);
        for session in timeline.sessions.drain(..over) {
            let place = WindowPart { start: session.start, end: session.last + self.gap, part: 0 };
            out.group(place, key, &session.group);
            if !key.is_overflow() {
                self.bytes -= bytes(key, &session);
            }
        }
        match timeline.sessions.first() {
            None => {
                self.timelines.remove(key);
            }
            Some(first) => {
                timeline.due = first.last + self.gap;
                self.queue.insert((timeline.due, key.clone()));
            }
        }
    }

    /// The least close time at which something would happen.
    pub(super) fn next(&self) -> Option<i64> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// The close time at which all open sessions end.
    pub(super) fn last(&self) -> Option<i64> {
        let sessions = self.timelines.values().filter_map(|timeline| timeline.sessions.last());
        sessions.map(|session| session.last + self.gap).max()
    }

    pub(super) fn groups(&self) -> usize {
        self.timelines.values().map(|timeline| timeline.sessions.len()).sum()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let overflow = Key::overflow();
        let others = self.timelines.get(&overflow).into_iter().flat_map(|timeline| &timeline.sessions);
        size_of::<Self>() + self.bytes + others.map(|session| bytes(&overflow, session)).sum::<usize>()
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.option(self.full_from.as_ref(), |out, key| key.save(out));
        out.count(self.timelines.len());
        for (key, timeline) in &self.timelines {
            key.save(out);
            out.signed(timeline.due);
            out.count(timeline.sessions.len());
            for session in &timeline.sessions {
                out.signed(session.start);
                out.signed(session.last);
                session.group.save(out);
            }
        }
    }

    pub(super) fn restore(gap: i64, rules: &AggregateRules, from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut sessions = Self::new(gap);
        sessions.full_from = from.option(Key::restore)?;
        for _ in 0..from.count()? {
            let key = Key::restore(from)?;
            let mut timeline = Timeline { due: from.time()?, sessions: Vec::new() };
            for _ in 0..from.count()? {
                let (start, last) = (from.time()?, from.time()?);
                let group = Group::restore(rules, from)?;
                let follows = timeline.sessions.last().is_none_or(|before| before.last + gap <= start);
                if start > last || !follows {
                    return Err(Damaged);
                }
                let session = Session { start, last, group };
                if !key.is_overflow() {
                    sessions.bytes += bytes(&key, &session);
                }
                timeline.sessions.push(session);
            }
            sessions.queue.insert((timeline.due, key.clone()));
            sessions.timelines.insert(key, timeline);
        }
        Ok(sessions)
    }
}
