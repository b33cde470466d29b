//! The content of the memory store, and the effects of a write.

use std::collections::{HashMap, HashSet};

use event::{EventId, Lane};

use sink::CLAIMED_BY_ANOTHER;
use sink::{
    Batch, Claim, Held, Reason, Record, RejectedRecord, Retry, RetryScope, SinkError, Takeover, Write, WriteOutcome,
};

/// An event as the memory store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its id.
    pub id: EventId,
    /// Its type's name.
    pub type_name: String,
    /// Who sent it.
    pub source: String,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// Its payload.
    pub payload: Vec<u8>,
    /// The revision that is, if it was an upsert.
    pub revision: Option<u64>,
}

/// A write that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The batch's lane.
    pub lane: Lane,
    /// The first position that the batch covers.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The batch's records, in order.
    pub ids: Vec<EventId>,
    /// What was answered.
    pub answer: Result<WriteOutcome, SinkError>,
}

/// What is stored.
#[derive(Clone, Default)]
pub(super) struct Data {
    pub(super) events: Vec<StoredRecord>,
    places: HashMap<EventId, usize>,
    cursors: HashMap<Lane, u64>,
    claims: HashMap<Lane, Claim>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) data: Data,
    pub(super) calls: Vec<Call>,
    pub(super) failing: usize,
    pub(super) panics: bool,
    /// This many writes are answered before some are not.
    pub(super) sparing: usize,
    pub(super) losing: usize,
    /// This many exchanges of claims take effect without an answer.
    pub(super) losing_claims: usize,
    pub(super) refused_ids: HashSet<EventId>,
    pub(super) refused_types: HashSet<String>,
    pub(super) retried_ids: HashSet<EventId>,
    /// Rejected, which is certain only if another record of the batch is accepted.
    pub(super) doubted_ids: HashSet<EventId>,
}

/// The outcome of one record.
enum Outcome {
    /// Nothing to do: it, or a later revision, had its effect before.
    Done,
    /// To be stored, instead of an earlier revision if there is one.
    Store(Option<u64>),
    Refuse(Reason),
    Retry(Reason),
}

/// A change by storing a record.
enum Change {
    Added,
    /// The event at this place was another revision.
    Replaced(usize, StoredRecord),
}

impl State {
    pub(super) fn get(&self, id: EventId) -> Option<&StoredRecord> {
        self.data.places.get(&id).map(|place| &self.data.events[*place])
    }

    pub(super) fn position(&self, lane: &Lane) -> u64 {
        self.data.cursors.get(lane).copied().unwrap_or(0)
    }

    pub(super) fn held(&self, lane: &Lane) -> Held {
        Held::new(self.position(lane), self.data.claims.get(lane).copied())
    }

    /// Exchanges the claim on a lane if that is allowed. The answer may be one of those that get lost.
    pub(super) fn claim(&mut self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Held, SinkError> {
        self.fail()?;
        if takeover.replaces(self.data.claims.get(lane).copied(), claim) {
            let position = takeover.position(self.position(lane));
            self.data.cursors.insert(lane.clone(), position);
            self.data.claims.insert(lane.clone(), claim);
        }
        if self.losing_claims > 0 {
            self.losing_claims -= 1;
            return Err(unavailable("the memory store is set to lose this answer"));
        }
        Ok(self.held(lane))
    }

    pub(super) fn heal(&mut self) {
        (self.failing, self.sparing, self.losing) = (0, 0, 0);
        self.refused_ids.clear();
        self.refused_types.clear();
        self.retried_ids.clear();
        self.doubted_ids.clear();
    }

    /// Fails if a test has set a fault for this call.
    pub(super) fn fail(&mut self) -> Result<(), SinkError> {
        if self.failing == 0 {
            return Ok(());
        }
        self.failing -= 1;
        Err(unavailable("the memory store is set to fail"))
    }

    pub(super) fn write(&mut self, batch: &Batch, fenced: bool) -> Result<WriteOutcome, SinkError> {
        let mut answer = self.fail();
        let mut report = WriteOutcome::Committed;
        if answer.is_ok() {
            match if fenced { self.write_fenced(batch) } else { Ok(self.write_keyed(batch)) } {
                Ok(done) => report = done,
                Err(error) => answer = Err(error),
            }
        }
        if answer.is_ok() && self.sparing > 0 {
            self.sparing -= 1;
        } else if answer.is_ok() && self.losing > 0 {
            self.losing -= 1;
            answer = Err(unavailable("the memory store is set to lose this answer"));
        }
        let answer = answer.map(|()| report);
        self.calls.push(Call {
            lane: batch.lane().clone(),
            first: batch.first(),
            last: batch.last(),
            ids: batch.records().map(|record| record.id).collect(),
            answer: answer.clone(),
        });
        answer
    }

    /// All records beyond the cursor and the cursor itself, or nothing.
    fn write_fenced(&mut self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let cursor = self.position(batch.lane());
        if !Claim::admits(self.data.claims.get(batch.lane()).copied(), batch.claim()) {
            return Err(unavailable(CLAIMED_BY_ANOTHER));
        }
        if cursor < batch.floor() {
            return Err(unavailable("the memory store has lost its newest events"));
        }
        if batch.last() <= cursor {
            return Ok(WriteOutcome::Committed);
        }
        let mut undo = Vec::new();
        let (refused, retry) = self.apply(batch, cursor, &mut undo);
        if refused.is_empty() && retry.is_empty() {
            self.data.cursors.insert(batch.lane().clone(), batch.last());
            self.data.claims.extend(batch.claim().map(|claim| (batch.lane().clone(), claim)));
            return Ok(WriteOutcome::Committed);
        }
        undo.into_iter().rev().for_each(|change| self.roll_back(change));
        let tried = batch.records().filter(|record| record.sequence > cursor);
        if !self.doubted_ids.is_empty() && tried.count() == refused.len() {
            return Err(SinkError::Misconfigured("the memory store is set to accept none of these events".into()));
        }
        match retry.into_iter().next() {
            Some(retry) => Err(SinkError::Unavailable(retry.reason)),
            None => Ok(WriteOutcome::Rejected { refused }),
        }
    }

    fn write_keyed(&mut self, batch: &Batch) -> WriteOutcome {
        match self.apply(batch, 0, &mut Vec::new()) {
            (refused, retry) if refused.is_empty() && retry.is_empty() => WriteOutcome::Committed,
            (refused, retry) => self.judge_doubted(batch, refused, retry),
        }
    }

    /// Delivery decides about doubted records.
    fn judge_doubted(&self, batch: &Batch, refused: Vec<RejectedRecord>, mut retry: Vec<Retry>) -> WriteOutcome {
        let is_doubted = |refusal: &RejectedRecord| {
            batch.get(refusal.index).is_some_and(|record| self.doubted_ids.contains(&record.id))
        };
        let (doubted, refused): (Vec<RejectedRecord>, Vec<RejectedRecord>) = refused.into_iter().partition(is_doubted);
        let unclear = |refusal: RejectedRecord| Retry {
            index: refusal.index,
            reason: refusal.reason,
            scope: RetryScope::Unclear,
        };
        retry.extend(doubted.into_iter().map(unclear));
        retry.sort_by_key(|retry| retry.index);
        WriteOutcome::Partial { refused, retry }
    }

    /// Stores the records after `cursor` that can be stored; returns the others, and how to undo it.
    fn apply(&mut self, batch: &Batch, cursor: u64, undo: &mut Vec<Change>) -> (Vec<RejectedRecord>, Vec<Retry>) {
        let (mut refused, mut retry) = (Vec::new(), Vec::new());
        for (index, record) in batch.records().enumerate().filter(|(_, record)| record.sequence > cursor) {
            match self.outcome(&record) {
                Outcome::Done => {}
                Outcome::Store(revision) => undo.push(self.store(&record, revision)),
                Outcome::Refuse(reason) => refused.push(RejectedRecord { index, reason }),
                Outcome::Retry(reason) => retry.push(Retry { index, reason, scope: RetryScope::Record }),
            }
        }
        (refused, retry)
    }

    fn outcome(&self, record: &Record<'_>) -> Outcome {
        let is_refused = [&self.refused_ids, &self.doubted_ids].iter().any(|ids| ids.contains(&record.id));
        if is_refused || self.refused_types.contains(record.type_name) {
            return Outcome::Refuse(format!("the memory store is set to reject event {}", record.id).into());
        }
        if self.retried_ids.contains(&record.id) {
            return Outcome::Retry(format!("the memory store is set to accept event {} later", record.id).into());
        }
        let Some(stored) = self.get(record.id) else { return Outcome::Store(revision(record.write)) };
        match (record.write, stored.revision) {
            (Write::Upsert(new), Some(old)) if new > old => Outcome::Store(Some(new)),
            (Write::Upsert(_), Some(_)) => Outcome::Done,
            (Write::Upsert(new), None) if same(stored, record) => Outcome::Store(Some(new)),
            _ if same(stored, record) => Outcome::Done,
            _ => Outcome::Refuse(format!("id {} is in use: another payload is stored under it", record.id).into()),
        }
    }

    fn store(&mut self, record: &Record<'_>, revision: Option<u64>) -> Change {
        let stored = StoredRecord {
            id: record.id,
            type_name: record.type_name.to_owned(),
            source: record.source.to_owned(),
            received_at: record.received_at,
            payload: record.payload.to_vec(),
            revision,
        };
        match self.data.places.get(&record.id) {
            Some(place) => Change::Replaced(*place, std::mem::replace(&mut self.data.events[*place], stored)),
            None => {
                self.data.places.insert(record.id, self.data.events.len());
                self.data.events.push(stored);
                Change::Added
            }
        }
    }

    /// Undoes the newest change.
    fn roll_back(&mut self, change: Change) {
        match change {
            Change::Replaced(place, stored) => self.data.events[place] = stored,
            Change::Added => {
                let added = self.data.events.pop();
                added.and_then(|stored| self.data.places.remove(&stored.id));
            }
        }
    }
}

fn revision(write: Write) -> Option<u64> {
    match write {
        Write::Insert => None,
        Write::Upsert(revision) => Some(revision),
    }
}

fn same(stored: &StoredRecord, record: &Record<'_>) -> bool {
    stored.payload == record.payload && stored.type_name == record.type_name && stored.source == record.source
}

pub(super) fn unavailable(reason: &str) -> SinkError {
    SinkError::Unavailable(reason.into())
}
