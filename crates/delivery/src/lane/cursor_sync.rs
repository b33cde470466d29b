//! Cursor reconciliation at the start of a lane: the store's cursor is authoritative, and the ledger follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use dead_letters::Blocked;
use event::TypeName;
use eventlog::{Finding, JournalRecord, Reader};
use ledger::{OutcomeCounts, RouteDecision, RouteFilter, Tally};
use sink::Cursor;

use crate::lane::{DeliveryState, Lane};

impl Lane {
    /// Moves the ledger to the store's cursor, which agrees with the journal, and returns what is known of the events
    /// after it.
    pub(crate) fn reconcile_cursor(&self, cursor: Cursor) -> Result<DeliveryState, Blocked> {
        let progress = self.ledger.lane(&self.name);
        let fence = match cursor {
            Cursor::Delivery => 0,
            Cursor::Store(position) => position,
        };
        let mut resume_at = match cursor {
            Cursor::Delivery => progress.cursor,
            Cursor::Store(position) => progress.resume_at(position),
        };
        let was_set_back = resume_at < progress.cursor;
        let oldest = self.shard.segments().oldest().unwrap_or(1);
        if resume_at + 1 < oldest {
            self.skip_lost(resume_at, oldest - 1);
            resume_at = oldest - 1;
        }
        let dead_lettered = self.dead.beyond(self.name.shard, resume_at)?;
        let deferred: BTreeSet<u64> = self.dead.deferred_beyond(self.name.shard, resume_at).into_iter().collect();
        if was_set_back {
            let (tally, lost) =
                self.recount(resume_at, progress.cursor, &dead_lettered, &deferred).map_err(unreadable)?;
            self.ledger.take_back(&self.name, resume_at, &tally, lost);
            self.status.contacts.set_back();
        }
        self.ledger.confirm(&self.name);
        self.status.set_cursor(resume_at);
        let replayed = self.dead.replayed_beyond(self.name.shard, resume_at)?;
        let deferred = self.take_over_deferred(deferred)?;
        Ok(DeliveryState { fence, dead_lettered, replayed, deferred })
    }

    /// The last position that the store can have from this journal. Events accepted after the first start that the
    /// store has not answered are beyond it. A store that is ahead of the journal of that time has other events at
    /// these positions.
    pub(crate) fn reach(&self) -> u64 {
        self.ledger.lane(&self.name).unconfirmed_since.unwrap_or_else(|| self.shard.durable())
    }

    /// Skips events that this lane never read and whose segments are gone. Segments are freed only after every lane has
    /// passed them, so they were removed from outside.
    fn skip_lost(&self, after: u64, last: u64) {
        let lost = last - after;
        self.status.lost.add(lost);
        self.ledger.advance_cursor(&self.name, last, &Tally::new(), lost);
        tracing::warn!(
            lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, position = after + 1, lost,
            "positions are missing from the journal (segments removed or unreadable): delivery continues after them. \
             Have clients resend these events"
        );
    }

    /// The outcomes of the events after `after` up to `last` when they were delivered, and how many were lost.
    fn recount(
        &self,
        after: u64,
        last: u64,
        dead_lettered: &BTreeSet<u64>,
        deferred: &BTreeSet<u64>,
    ) -> io::Result<(Tally, u64)> {
        let mut rules = RouteFilter::new(self.ledger.clone(), self.name.clone());
        let mut sums: BTreeMap<TypeName, OutcomeCounts> = BTreeMap::new();
        let mut lost = 0;
        let mut count = |sequence: u64, record: &JournalRecord<'_>| {
            if sequence > after
                && sequence <= last
                && !deferred.contains(&sequence)
                && let Some(slot) = rules.slot_of(record.type_name, sequence)
                && let Some(name) = rules.name(slot)
            {
                let name = name.clone();
                let is_dead_lettered = dead_lettered.contains(&sequence);
                // An event whose condition was undecided is a dead letter, or the store has it by now.
                let is_skipped =
                    !is_dead_lettered && rules.judge(slot, sequence, record.payload) == RouteDecision::Skipped;
                let outcomes = sums.entry(name).or_default();
                *(match (is_dead_lettered, is_skipped) {
                    (true, _) => &mut outcomes.dead,
                    (false, true) => &mut outcomes.skipped,
                    (false, false) => &mut outcomes.stored,
                }) += 1;
            }
        };
        let mut reader = Reader::new(self.shard.segments().clone(), after + 1);
        while let Some(chunk) = reader.read(last)? {
            chunk.for_each_record(&mut count);
            lost += chunk.finding().map_or(0, Finding::lost_count);
        }
        Ok((sums.into_iter().collect(), lost))
    }
}

fn unreadable(error: io::Error) -> Blocked {
    Blocked::Retry(format!("can't read the journal: {error}. Check the disk of the data directory"))
}
