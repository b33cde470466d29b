//! The deferred events of one sink: an idempotent store rejects them for now, and accepts others. Their lane sends them
//! again.
//!
//! Their records are in the journal of dead letters. `Deferred` has the event. The next record of the same event ends
//! it: `Stored` if the store has it, a dead letter if it became one, `Released` if its lane sends it in order or its
//! route was discarded. Until then the ledger counts the event as pending. The record stays in the journal until both
//! saved generations of the ledger have counted the end.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use event::{EventId, Lane, Position, TypeName};
use eventlog::{JournalRecord, PendingLane, SequenceRange, WatchRequest};
use ledger::Recount;
use limits::DELIVERY_BYTES_MAX;
use sink::{Batch, Claim, Write};
use tokio::time::Instant;

use crate::blocked::Blocked;
use crate::dead_record::{DeadRecord, RecordKind};
use crate::notify::LastDead;
use crate::page::Page;
use crate::reader::DeadLetterReader;
use crate::{DeadLetters, NewDeadLetter, later};

/// Deferred events of one sink at most.
const COUNT_MAX: usize = 10_000;
/// Bytes of their payloads.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Ids that a message names.
const IDS_LISTED: usize = 5;
/// Events that are sent again in one batch, before the lane sends new ones.
const PAGE_RECORDS: usize = 100;
const PAGE_BYTES: usize = DELIVERY_BYTES_MAX / 4;

/// A deferred event.
#[derive(Clone, Debug)]
struct Event {
    /// The position of its record in the journal of dead letters.
    at: u64,
    id: EventId,
    type_name: TypeName,
    received_at: i64,
    revision: Option<u64>,
    bytes: usize,
    /// Since when the store has rejected it without an outage.
    since: Instant,
}

impl Event {
    fn end(&self, shard: u16, sequence: u64, kind: RecordKind) -> DeadRecord<'_> {
        let event = JournalRecord::new(self.id, self.received_at, self.type_name.as_str(), &[]);
        DeadRecord { event, shard, sequence, kind, reason: "", first_written_at: None }
    }
}

/// How a deferred event ends that became no dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeferredEnd {
    /// The store has it.
    Stored,
    /// Its lane sends it in order, or its route was discarded.
    Released,
}

/// The deferred events of one sink, by shard and sequence.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    events: BTreeMap<(u16, u64), Event>,
    /// How many there are, of each type that has any.
    by_type: BTreeMap<TypeName, u64>,
    bytes: usize,
    /// Of events that have ended: the positions of the event's record and of its end.
    ended: Vec<(u64, u64)>,
}

impl Deferred {
    /// Adds a record of the journal at position `at`, and returns what the ledger has to count.
    pub(super) fn note(&mut self, at: u64, record: &DeadRecord<'_>) -> Option<Recount> {
        let DeadRecord { event, shard, sequence, kind, .. } = *record;
        let key = (shard, sequence);
        if kind == RecordKind::Deferred {
            let event = Event {
                at,
                id: event.id,
                type_name: TypeName::new(event.type_name).ok()?,
                received_at: event.received_at,
                revision: event.revision,
                bytes: event.payload.len(),
                since: Instant::now(),
            };
            self.remove(key);
            self.insert(key, event);
            return None;
        }
        let Event { at: before, type_name, .. } = self.remove(key)?;
        self.ended.push((before, at));
        let is_stored = match kind {
            RecordKind::Released | RecordKind::Deferred => return None,
            RecordKind::Stored | RecordKind::Replayed => true,
            RecordKind::Dropped | RecordKind::DeadLetter => false,
        };
        Some(Recount { shard, sequence, type_name, is_stored, was_pending: true })
    }

    fn insert(&mut self, key: (u16, u64), event: Event) {
        self.bytes += event.bytes;
        *self.by_type.entry(event.type_name.clone()).or_default() += 1;
        self.events.insert(key, event);
    }

    fn remove(&mut self, key: (u16, u64)) -> Option<Event> {
        let event = self.events.remove(&key)?;
        self.bytes -= event.bytes;
        if let Some(count) = self.by_type.get_mut(&event.type_name) {
            *count -= 1;
            if *count == 0 {
                self.by_type.remove(&event.type_name);
            }
        }
        Some(event)
    }

    /// The first position of the journal that is needed, if both saved generations of the ledger have counted up to `counted`.
    pub(super) fn first_needed(&mut self, counted: u64) -> Option<u64> {
        self.ended.retain(|(_, end)| *end > counted);
        let ended = self.ended.iter().map(|(at, _)| *at);
        self.events.values().map(|event| event.at).chain(ended).min()
    }

    pub(super) fn count(&self) -> usize {
        self.events.len()
    }

    fn of_shard(&self, shard: u16) -> impl Iterator<Item = (u64, &Event)> {
        self.events.range((shard, 0)..=(shard, u64::MAX)).map(|((_, sequence), event)| (*sequence, event))
    }

    /// How many of these there is room for, from the first on.
    fn room_for(&self, events: &[NewDeadLetter<'_>]) -> usize {
        let (mut count, mut bytes) = (self.events.len(), self.bytes);
        let fits = |event: &&NewDeadLetter<'_>| {
            (count, bytes) = (count + 1, bytes + event.record.payload.len());
            count == 1 || (count <= COUNT_MAX && bytes <= BYTES_MAX)
        };
        events.iter().take_while(fits).count()
    }
}

/// Events that are sent again together, with the sequence of each by its position in the journal of dead letters.
pub struct Resent {
    page: Page,
    /// Position and sequence. Both ascend.
    part: Vec<(u64, u64)>,
    /// The last event, also if its record can't be read.
    last: u64,
}

impl Resent {
    /// The events as a batch, in the order of their sequences.
    pub fn batch(&self, of: (&Lane, Claim)) -> Batch {
        let first = self.part.first().map_or(1, |(_, sequence)| *sequence);
        self.page.batch(of, first - 1, &self.part)
    }

    /// The last event, also if its record can't be read.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// The events at these indices as dead letters, with their reasons. Indices ascend.
    pub fn dead_letters<'a>(&'a self, reasons: &'a [(usize, String)]) -> Vec<NewDeadLetter<'a>> {
        let chosen: Vec<(u64, u64, &str)> = reasons
            .iter()
            .filter_map(|(index, reason)| self.part.get(*index).map(|(at, sequence)| (*at, *sequence, reason.as_str())))
            .collect();
        let wanted: Vec<u64> = chosen.iter().map(|(at, ..)| *at).collect();
        let records = self.page.records(&wanted).into_iter();
        records
            .zip(chosen)
            .map(|(record, (_, sequence, reason))| NewDeadLetter { sequence, record: record.event, reason })
            .collect()
    }

    /// The sequence of the event at an index.
    pub fn sequence(&self, index: usize) -> Option<u64> {
        self.part.get(index).map(|(_, sequence)| *sequence)
    }

    /// Whether no event of them can be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// How many events they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.len()
    }
}

impl DeadLetters {
    pub(super) fn deferred(&self) -> MutexGuard<'_, Deferred> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether events of this shard are deferred.
    pub fn has_deferred(&self, shard: u16) -> bool {
        self.deferred_count.load(Ordering::Relaxed) > 0 && self.deferred().of_shard(shard).next().is_some()
    }

    /// Defers events of one shard durably, as many as there is room for, and returns how many were deferred.
    pub fn defer(&self, shard: u16, events: &[NewDeadLetter<'_>]) -> Result<usize, Blocked> {
        // The number of deferred events is in the journal.
        self.open_existing()?;
        let events = &events[..self.deferred().room_for(events)];
        if events.is_empty() {
            return Ok(0);
        }
        let is_new = |event: &&NewDeadLetter<'_>| !self.deferred().events.contains_key(&(shard, event.sequence));
        let records: Vec<DeadRecord<'_>> =
            events.iter().filter(is_new).map(|event| event.in_shard(shard, RecordKind::Deferred)).collect();
        self.append(&records, |_, _| false)?;
        self.refused_for_now(shard, events.iter().map(|event| (event.sequence, event.reason)), true);
        self.log_new();
        Ok(events.len())
    }

    /// Opens the journal if there is one.
    pub fn open_existing(&self) -> Result<(), Blocked> {
        self.with_existing(|_| ()).map(drop)
    }

    /// The store has rejected these events for now: the newest of each type is shown with its reason.
    pub fn refused_for_now<'a>(&self, shard: u16, events: impl Iterator<Item = (u64, &'a str)>, are_new: bool) {
        let (deferred, mut notices) = (self.deferred(), self.pending_deferred_notices());
        for (sequence, reason) in events {
            if let Some(event) = deferred.events.get(&(shard, sequence)) {
                let reason = format!("event {}: {reason}", event.id);
                let type_name = event.type_name.as_str();
                if are_new { notices.add(type_name, &reason) } else { notices.renew(type_name, &reason) }
            }
        }
    }

    /// Ends deferred events of one shard. The ledger counts them when that is durable.
    pub fn end_deferred(&self, shard: u16, sequences: &[u64], end: DeferredEnd) -> Result<(), Blocked> {
        let kind = match end {
            DeferredEnd::Stored => RecordKind::Stored,
            DeferredEnd::Released => RecordKind::Released,
        };
        let deferred = self.deferred();
        let found =
            sequences.iter().filter_map(|at| deferred.events.get(&(shard, *at)).map(|event| (*at, event.clone())));
        let ended: Vec<(u64, Event)> = found.collect();
        drop(deferred);
        if ended.is_empty() {
            return Ok(());
        }
        let records: Vec<DeadRecord<'_>> = ended.iter().map(|(at, event)| event.end(shard, *at, kind)).collect();
        self.append(&records, |_, _| false)
    }

    /// The deferred events of `shard` after `cursor`.
    pub fn deferred_beyond(&self, shard: u16, cursor: u64) -> Vec<u64> {
        self.deferred().of_shard(shard).map(|(sequence, _)| sequence).filter(|sequence| *sequence > cursor).collect()
    }

    /// The position of a deferred event's record: of the event with this id, only the one at `position` if that is known.
    pub(crate) fn deferred_at(&self, id: Option<EventId>, position: Option<Position>) -> Option<u64> {
        let deferred = self.deferred();
        let is_same = |event: &&Event| id.is_none_or(|id| id == event.id);
        let found = match position {
            Some(at) => deferred.events.get(&(at.shard, at.sequence)).filter(is_same),
            None => id.and_then(|_| deferred.events.values().find(is_same)),
        };
        found.map(|event| event.at)
    }

    /// Reads deferred events of `shard`, at most `limit`: those after `after`, up to `cursor`, which their lane has
    /// passed.
    pub fn read_deferred(
        self: &Arc<Self>,
        shard: u16,
        (after, cursor): (u64, u64),
        limit: usize,
    ) -> Result<Option<Resent>, Blocked> {
        let mut bytes = 0;
        let fits = |(_, event): &(u64, &Event)| {
            let is_first = bytes == 0;
            bytes += event.bytes;
            is_first || bytes <= PAGE_BYTES.min(self.memory.delivery_bytes)
        };
        // Events that a probe has deferred precede earlier ones in the journal; a batch is in the order of sequences.
        let mut last_at = 0;
        let ascends = |(_, event): &(u64, &Event)| std::mem::replace(&mut last_at, event.at) < event.at;
        let deferred = self.deferred();
        let passed = deferred.of_shard(shard).filter(|(sequence, _)| *sequence > after && *sequence <= cursor);
        let wanted: BTreeMap<u64, u64> = passed
            .take(limit.min(PAGE_RECORDS))
            .take_while(fits)
            .take_while(ascends)
            .map(|(sequence, event)| (event.at, sequence))
            .collect();
        drop(deferred);
        if wanted.is_empty() {
            return Ok(None);
        }
        let positions: Vec<u64> = wanted.keys().copied().collect();
        let (mut page, mut read_up_to) = (Page::default(), 0);
        for at in &positions {
            if *at < read_up_to {
                continue;
            }
            if page.is_full(&self.memory) {
                break;
            }
            let Some(mut reading) = DeadLetterReader::from(self, *at)? else { break };
            if let Some(chunk) = reading.read().map_err(later)? {
                read_up_to = chunk.end();
                page.add(chunk, &positions);
            }
        }
        let part = page.positions().iter().filter_map(|at| Some((*at, *wanted.get(at)?))).collect();
        let read =
            page.is_full(&self.memory).then(|| page.positions().iter().filter_map(|at| wanted.get(at)).max()).flatten();
        let last = read.or(wanted.values().max()).copied().unwrap_or(after);
        Ok(Some(Resent { page, part, last }))
    }

    /// For how long the store has rejected an event without an outage.
    pub fn refused_since(&self, shard: u16, sequence: u64) -> Option<Instant> {
        self.deferred().events.get(&(shard, sequence)).map(|event| event.since)
    }

    /// The store does not answer: the outage does not count against the events.
    pub fn outage(&self, shard: u16) {
        let now = Instant::now();
        self.deferred().events.range_mut((shard, 0)..=(shard, u64::MAX)).for_each(|(_, event)| event.since = now);
    }

    /// The deferred events of `shard` up to `cursor` of which the store has a higher revision, if it has those of these
    /// records that are not deferred.
    pub fn superseded<'a>(&self, shard: u16, cursor: u64, stored: impl Iterator<Item = sink::Record<'a>>) -> Vec<u64> {
        let deferred = self.deferred();
        if deferred.of_shard(shard).all(|(_, event)| event.revision.is_none()) {
            return Vec::new();
        }
        let mut highest: HashMap<EventId, u64> = HashMap::new();
        for record in stored {
            if let Write::Upsert(revision) = record.write
                && !deferred.events.contains_key(&(shard, record.sequence))
            {
                let known = highest.entry(record.id).or_default();
                *known = revision.max(*known);
            }
        }
        let is_lower = |(_, event): &(u64, &Event)| {
            event.revision.is_some_and(|revision| highest.get(&event.id).is_some_and(|highest| *highest > revision))
        };
        deferred
            .of_shard(shard)
            .filter(|(sequence, _)| *sequence <= cursor)
            .filter(is_lower)
            .map(|(sequence, _)| sequence)
            .collect()
    }

    /// Releases the events whose routes were discarded: they are not sent, and the ledger has counted them.
    pub fn release_discarded(&self) -> Result<(), Blocked> {
        let deferred = self.deferred();
        let all = deferred.events.iter().map(|((shard, sequence), event)| (*shard, *sequence, event.type_name.clone()));
        let all: Vec<(u16, u64, TypeName)> = all.collect();
        drop(deferred);
        let discarded =
            all.into_iter().filter(|(shard, at, name)| self.ledger.is_discarded(&self.sink, name, *shard, *at));
        let mut by_shard: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        discarded.for_each(|(shard, at, _)| by_shard.entry(shard).or_default().push(at));
        by_shard.iter().try_for_each(|(shard, sequences)| self.end_deferred(*shard, sequences, DeferredEnd::Released))
    }

    /// The ids of deferred events of a type, the newest first: some of them if there are many.
    pub(super) fn deferred_ids(&self, type_name: &str) -> String {
        let deferred = self.deferred();
        let mut of_type = deferred.events.values().rev().filter(|event| event.type_name.as_str() == type_name);
        let some: Vec<String> = of_type.by_ref().take(IDS_LISTED).map(|event| event.id.to_string()).collect();
        some.join(", ") + if of_type.next().is_some() { ", …" } else { "" }
    }

    /// How many events of a type are deferred, and the newest answer to one of them, with its id; 0 while the journal
    /// is not open.
    pub(crate) fn deferred_of_type(&self, type_name: &TypeName) -> (u64, Option<LastDead>) {
        if self.deferred_count.load(Ordering::Relaxed) == 0 {
            return (0, None);
        }
        let count = self.deferred().by_type.get(type_name).copied().unwrap_or(0);
        (count, self.pending_deferred_notices().last(type_name.as_str()).filter(|_| count > 0))
    }

    /// Adds to `pending` the lanes that have passed and deferred an event of the request.
    pub fn add_pending(&self, asked: &WatchRequest, is_configured: bool, pending: &mut Vec<PendingLane>) {
        if self.deferred_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let deferred = self.deferred();
        for SequenceRange { shard, first, last, only } in &asked.spans {
            let is_listed = |pending: &PendingLane| pending.sink == self.sink && pending.shard == *shard;
            let is_requested = |event: &Event| only.as_ref().is_none_or(|only| only.contains(&event.id));
            let mut within = deferred.events.range((*shard, *first)..=(*shard, *last.max(first)));
            if let Some(((_, sequence), _)) = within.find(|(_, event)| is_requested(event))
                && !pending.iter().any(is_listed)
            {
                let until = is_configured.then_some(*sequence);
                pending.push(PendingLane { sink: self.sink.clone(), shard: *shard, until });
            }
        }
    }
}
