//! The batch builder: it collects the records for one sink, and counts their outcomes after the sink has stored them.

use std::collections::BTreeSet;

use bytes::Bytes;
use dead_letters::as_sent;
use eventlog::{JournalRecord, LogChunk};
use ledger::{CountsBySlot, RouteDecision, RouteFilter, Tally, Undecided};
use limits::memory::Budgets;
use sink::Batch;

use crate::log_cursor::records_at;
use crate::log_cursor::{ChunkResult, Consumed};
use crate::stored_times::BatchTimes;

/// What a lane knows of events before it asks the sink.
#[derive(Debug, Default)]
pub(crate) struct DeliveryState {
    /// The store has everything up to this position that it did not reject.
    pub(crate) fence: u64,
    /// Events that are dead letters already.
    pub(crate) dead_lettered: BTreeSet<u64>,
    /// Events that were dead letters, and were stored on a replay.
    pub(crate) replayed: BTreeSet<u64>,
    /// Deferred events: they are counted when they end.
    pub(crate) deferred: BTreeSet<u64>,
}

impl DeliveryState {
    /// Whether the store has the event: if so, the route's condition does not matter.
    fn is_stored(&self, sequence: u64) -> bool {
        sequence <= self.fence || self.replayed.contains(&sequence)
    }
}

/// A batch, and the outcomes of its positions.
pub(crate) struct BatchBuilder {
    memory: Budgets,
    batch: Batch,
    next: u64,
    sources: Vec<LogChunk>,
    held_bytes: usize,
    by_slot: CountsBySlot,
    lost: u64,
    oldest: Option<i64>,
    undecided: Undecided,
    /// Records of the batch that became dead letters or are deferred.
    not_stored: BTreeSet<u64>,
}

impl BatchBuilder {
    /// Begins with an empty batch.
    pub(crate) fn new(batch: Batch, memory: Budgets) -> Self {
        let first = batch.first();
        Self {
            memory,
            batch,
            next: first,
            sources: Vec::new(),
            held_bytes: 0,
            by_slot: CountsBySlot::default(),
            lost: 0,
            oldest: None,
            undecided: Vec::new(),
            not_stored: BTreeSet::new(),
        }
    }

    pub(crate) const fn batch(&self) -> &Batch {
        &self.batch
    }

    /// When the first of its records was received.
    pub(crate) const fn oldest(&self) -> Option<i64> {
        self.oldest
    }

    /// Positions without a record that can't be read.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether it covers any position.
    pub(crate) const fn covers_any(&self) -> bool {
        self.next > self.batch.first()
    }

    /// Events of the last chunk whose condition is undecided. They count as dead letters, and have to become dead
    /// letters.
    pub(crate) fn take_undecided(&mut self) -> Undecided {
        std::mem::take(&mut self.undecided)
    }

    /// Adds the rest of `chunk`. It stops before the end if the batch is full or the slice is over.
    pub(crate) fn add(&mut self, chunk: &LogChunk, rules: &mut RouteFilter, known: &DeliveryState) -> ChunkResult {
        // A part of this chunk may be in the batch already.
        let was_held = self.sources.last().is_some_and(|last| last.end() == chunk.end());
        let (mut held, next) = (was_held, self.next);
        let bytes = chunk.bytes();
        let mut add =
            |(at, record): (u64, JournalRecord<'_>)| self.add_record(at, &record, bytes, &mut held, rules, known);
        let extent = match chunk {
            LogChunk::Block(block) => Consumed::of(block.records_from(next), &mut add),
            LogChunk::Damaged(damaged) => Consumed::of(damaged.survivors().into_iter(), &mut add),
        };
        if held && !was_held {
            self.sources.push(chunk.clone());
        }
        if extent == Consumed::All {
            self.lost += chunk.finding().map_or(0, eventlog::Finding::lost_count);
            self.next = self.next.max(chunk.end());
            self.batch.cover(self.next.saturating_sub(1));
        }
        ChunkResult { extent, is_slice_over: rules.is_slice_over(), has_undecided: !self.undecided.is_empty() }
    }

    fn add_record(
        &mut self,
        sequence: u64,
        record: &JournalRecord<'_>,
        block: &Bytes,
        held: &mut bool,
        rules: &mut RouteFilter,
        known: &DeliveryState,
    ) -> Consumed {
        if sequence < self.next {
            return Consumed::All;
        }
        if let Some(slot) = rules.slot_of(record.type_name, sequence) {
            if rules.is_slice_over() {
                return Consumed::SliceOver;
            }
            if known.dead_lettered.contains(&sequence) {
                self.by_slot.of(slot).dead += 1;
            } else if known.deferred.contains(&sequence) {
                // It stays pending.
            } else if let Some(outcome) = self.leave_out(slot, sequence, record, rules, known) {
                *outcome += 1;
            } else if sequence <= known.fence {
                self.by_slot.of(slot).stored += 1;
            } else {
                let newly_held = if *held { 0 } else { block.len() };
                if self.is_full_before(record.payload.len(), newly_held) {
                    return Consumed::Full;
                }
                *held = true;
                self.held_bytes += newly_held;
                self.push(sequence, record, block);
                self.by_slot.of(slot).stored += 1;
            }
        }
        self.next = sequence + 1;
        self.batch.cover(sequence);
        Consumed::All
    }

    /// The outcome of an event that is not sent, by its route's condition.
    fn leave_out(
        &mut self,
        slot: usize,
        sequence: u64,
        record: &JournalRecord<'_>,
        rules: &mut RouteFilter,
        known: &DeliveryState,
    ) -> Option<&mut u64> {
        match rules.judge(slot, sequence, record.payload) {
            RouteDecision::Taken => None,
            RouteDecision::Skipped => Some(&mut self.by_slot.of(slot).skipped),
            RouteDecision::Undecided(_) if known.is_stored(sequence) => None,
            RouteDecision::Undecided(reason) => {
                self.undecided.push((sequence, reason));
                Some(&mut self.by_slot.of(slot).dead)
            }
        }
    }

    fn is_full_before(&self, payload_bytes: usize, newly_held: usize) -> bool {
        !self.batch.is_empty()
            && (self.batch.len() >= self.memory.delivery_records
                || self.batch.payload_bytes() + payload_bytes > self.memory.delivery_bytes
                || (newly_held > 0 && self.held_bytes + newly_held > self.memory.delivery_held_bytes()))
    }

    fn push(&mut self, sequence: u64, record: &JournalRecord<'_>, block: &Bytes) {
        self.oldest.get_or_insert(record.received_at);
        self.batch.push(block, &as_sent(record, sequence));
        self.batch.trace(sequence, record.trace);
    }

    /// An event that counted as stored becomes a dead letter.
    pub(crate) fn mark_dead(&mut self, slot: usize, sequence: u64) {
        self.not_stored.insert(sequence);
        let outcomes = self.by_slot.of(slot);
        debug_assert!(outcomes.stored > 0, "an event that dies was counted");
        outcomes.stored = outcomes.stored.saturating_sub(1);
        outcomes.dead += 1;
    }

    /// An event that counted as stored is deferred, so it is pending.
    pub(crate) fn mark_deferred(&mut self, slot: usize, sequence: u64) {
        self.not_stored.insert(sequence);
        let outcomes = self.by_slot.of(slot);
        debug_assert!(outcomes.stored > 0, "an event that is deferred was counted");
        outcomes.stored = outcomes.stored.saturating_sub(1);
    }

    /// Counts the times of the records that the store has, now that the batch has ended.
    pub(crate) fn count_times(&self, rules: &mut RouteFilter, times: &mut BatchTimes, now: i64) {
        for (sequence, type_name, received_at) in self.batch.receipts() {
            if !self.not_stored.contains(&sequence)
                && let Some(slot) = rules.slot_of(type_name, sequence)
                && let Some(name) = rules.name(slot)
            {
                times.count(slot, name, now.saturating_sub(received_at));
            }
        }
        times.flush();
    }

    pub(crate) fn tally(&self, rules: &RouteFilter) -> Tally {
        self.by_slot.tally(rules)
    }

    /// The records of the batch at these sequences, which ascend, in the form that the log has.
    pub(crate) fn originals(&self, sequences: &[u64]) -> Vec<(u64, JournalRecord<'_>)> {
        self.sources.iter().flat_map(|chunk| records_at(chunk, sequences)).collect()
    }
}
