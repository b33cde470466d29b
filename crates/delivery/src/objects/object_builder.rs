//! Builds an object: it counts the records that belong to it. The records themselves stay in the journal.

use std::collections::{BTreeMap, BTreeSet};

use dead_letters::as_sent;
use event::Lane;
use eventlog::{JournalRecord, LogChunk};
use ledger::{CountsBySlot, RouteDecision, RouteFilter, Tally, Undecided};
use limits::OBJECTS_GATHERED_MAX;
use objects::{Manifest, ObjectFormat, ObjectSink, Period, Portion, line_bytes};
use sink::Claim;
use tokio::time::Instant;

use crate::log_cursor::{ChunkResult, Consumed};
use crate::objects::intent::{Kept, Object, ObjectIntent};

/// Counts events from one position on.
pub(crate) struct ObjectBuilder {
    first: u64,
    next: u64,
    records: u64,
    /// The events of each object.
    portions: BTreeMap<PortionKey, Share>,
    received_at: Option<i64>,
    since: Instant,
    /// The outcomes of the events that are not written.
    left_out: CountsBySlot,
    lost: u64,
    undecided: Undecided,
}

/// The period of an object's events, and the slot of their type, if objects differ by them.
type PortionKey = (Option<Period>, Option<usize>);

/// The events of an object.
struct Share {
    records: u64,
    bytes: u64,
    /// When the first of them was received.
    received_at: i64,
    /// The time in its name.
    time: i64,
    /// The slots of their types.
    slots: BTreeSet<usize>,
}

impl ObjectBuilder {
    /// From position `first` on.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            next: first,
            records: 0,
            portions: BTreeMap::new(),
            received_at: None,
            since: Instant::now(),
            left_out: CountsBySlot::default(),
            lost: 0,
            undecided: Vec::new(),
        }
    }

    /// Events of the last chunk whose condition is undecided: they have to become dead letters.
    pub(crate) fn take_undecided(&mut self) -> Undecided {
        std::mem::take(&mut self.undecided)
    }

    /// Counts the rest of `chunk`. It stops before the end if there is enough for an object, or the slice is over.
    pub(crate) fn add(
        &mut self,
        chunk: &LogChunk,
        rules: &mut RouteFilter,
        dead_lettered: &BTreeSet<u64>,
        (store, limits): (&ObjectSink, &ObjectFormat),
    ) -> ChunkResult {
        let next = self.next;
        let mut count =
            |(at, record): (u64, JournalRecord<'_>)| self.count(at, &record, rules, dead_lettered, (store, limits));
        let extent = match chunk {
            LogChunk::Block(block) => Consumed::of(block.records_from(next), &mut count),
            LogChunk::Damaged(damaged) => Consumed::of(damaged.survivors().into_iter(), &mut count),
        };
        if extent == Consumed::All {
            self.lost += chunk.finding().map_or(0, eventlog::Finding::lost_count);
            self.next = self.next.max(chunk.end());
        }
        ChunkResult { extent, is_slice_over: rules.is_slice_over(), has_undecided: !self.undecided.is_empty() }
    }

    fn count(
        &mut self,
        sequence: u64,
        record: &JournalRecord<'_>,
        rules: &mut RouteFilter,
        dead_lettered: &BTreeSet<u64>,
        (store, limits): (&ObjectSink, &ObjectFormat),
    ) -> Consumed {
        if sequence < self.next {
            return Consumed::All;
        }
        let slot = rules.slot_of(record.type_name, sequence);
        if slot.is_some() && rules.is_slice_over() {
            return Consumed::SliceOver;
        }
        if let Some(slot) = slot
            && !self.leaves_out(slot, sequence, record, rules, (dead_lettered, store))
        {
            let bytes = line_bytes(limits.line, record.type_name, record.source, record.payload);
            let time = name_time(record, limits);
            let key = (limits.prefix.period(time), limits.prefix.has_type().then_some(slot));
            if !self.has_room(key, bytes, limits) {
                return Consumed::Full;
            }
            self.hold((key, slot), bytes, (record.received_at, time));
        }
        self.next = sequence + 1;
        Consumed::All
    }

    /// Whether its object has room for another event of this size. An empty object has room for any event.
    fn has_room(&self, key: PortionKey, bytes: u64, limits: &ObjectFormat) -> bool {
        match self.portions.get(&key) {
            None => self.portions.len() < OBJECTS_GATHERED_MAX,
            Some(share) => share.records < limits.records_max && share.bytes + bytes <= limits.bytes_max,
        }
    }

    fn hold(&mut self, (key, slot): (PortionKey, usize), bytes: u64, (received_at, time): (i64, i64)) {
        if self.records == 0 {
            self.received_at = Some(received_at);
            self.since = Instant::now();
        }
        self.records += 1;
        let new = || Share { records: 0, bytes: 0, received_at, time, slots: BTreeSet::new() };
        let share = self.portions.entry(key).or_insert_with(new);
        share.records += 1;
        share.bytes += bytes;
        share.slots.insert(slot);
    }

    /// Whether an event is not written: it is a dead letter, its route's condition excludes it, or the store cannot
    /// accept it.
    fn leaves_out(
        &mut self,
        slot: usize,
        sequence: u64,
        record: &JournalRecord<'_>,
        rules: &mut RouteFilter,
        (dead_lettered, store): (&BTreeSet<u64>, &ObjectSink),
    ) -> bool {
        let outcomes = self.left_out.of(slot);
        if dead_lettered.contains(&sequence) {
            outcomes.dead += 1;
            return true;
        }
        match rules.judge(slot, sequence, record.payload) {
            RouteDecision::Taken => match store.refusal(record.payload) {
                None => return false,
                Some(reason) => {
                    outcomes.dead += 1;
                    self.undecided.push((sequence, reason.to_string()));
                }
            },
            RouteDecision::Skipped => outcomes.skipped += 1,
            RouteDecision::Undecided(reason) => {
                outcomes.dead += 1;
                self.undecided.push((sequence, reason));
            }
        }
        true
    }

    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// Whether it covers any position.
    pub(crate) const fn covers_any(&self) -> bool {
        self.next > self.first
    }

    /// The positions that it covers.
    pub(crate) const fn run(&self) -> (u64, u64) {
        (self.first, self.next - 1)
    }

    /// The outcomes of the events that are not written: dead letters, and events that a condition excludes.
    pub(crate) fn left_out(&self, rules: &RouteFilter) -> Tally {
        self.left_out.tally(rules)
    }

    /// Positions that can't be read.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// When its first event was received.
    pub(crate) const fn received_at(&self) -> Option<i64> {
        self.received_at
    }

    /// When its first event will be old enough.
    pub(crate) fn due_at(&self, limits: &ObjectFormat) -> Instant {
        self.since + limits.age_max
    }

    /// The objects of its events, if there are any, after the object `previous`.
    pub(crate) fn intent(
        &self,
        (lane, claim): (&Lane, Claim),
        rules: &RouteFilter,
        limits: &ObjectFormat,
        mut previous: Option<String>,
    ) -> Option<ObjectIntent> {
        let (first, last) = self.run();
        let object = |share: &Share| {
            let kept = share.slots.iter();
            let kept = kept.filter_map(|slot| Some((rules.name(*slot)?.to_string(), rules.passage(*slot)?.clone())));
            let kept: Kept = kept.collect();
            let type_name = kept.keys().next().map_or("", String::as_str);
            let portion = Portion { type_name, received_at: share.received_at, time: share.time };
            let manifest = Manifest::new(lane.clone(), first..=last, portion, limits, previous.take(), Some(claim));
            previous = Some(manifest.name.clone());
            Object { manifest, kept }
        };
        let objects: Vec<Object> = self.portions.values().map(object).collect();
        ObjectIntent::gather(objects).pop()
    }
}

/// The time in the name of an event's object.
fn name_time(record: &JournalRecord<'_>, limits: &ObjectFormat) -> i64 {
    if limits.prefix.follows_events() { as_sent(record, 0).naming_time() } else { record.received_at }
}
