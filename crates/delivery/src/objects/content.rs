//! The events of an object, read from the journal one block at a time, and their outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use dead_letters::as_sent;
use event::{Lane, TypeName};
use eventlog::{Block, Finding, JournalRecord, LogChunk, Reader, Segments};
use ledger::{OutcomeCounts, RouteDecision, RouteFilter, Tally};
use objects::{NoParts, Parts, Period};
use sink::Batch;

use crate::objects::intent::{Kept, ObjectIntent};
use crate::stored_times::Receipts;

/// A run of positions, and which of its events are wanted.
pub(crate) struct Content {
    lane: Lane,
    segments: Segments,
    /// A block that is in memory already.
    at_hand: Option<Block>,
    reader: Option<Reader>,
    first: u64,
    last: u64,
    /// `None`: the events that the rules route to the sink.
    kept: Option<Kept>,
    /// The period of its events, if it holds those of one.
    period: Option<Period>,
    /// Types of the other objects of the same run, each with its periods there.
    others: BTreeMap<String, BTreeSet<Option<Period>>>,
    /// Whether events that no object of the run keeps are counted here.
    counts_rest: bool,
    dead_lettered: Arc<BTreeSet<u64>>,
    rules: RouteFilter,
    /// Positions up to here are counted already.
    counted: u64,
    outcomes: BTreeMap<TypeName, (OutcomeCounts, Receipts)>,
    lost: u64,
}

/// The outcomes of events, how many positions could not be read, and when the stored events were received.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) tally: Tally,
    pub(crate) lost: u64,
    pub(crate) receipts: Vec<(TypeName, Receipts)>,
}

impl Account {
    /// Adds that of another object.
    pub(crate) fn add(&mut self, other: Self) {
        self.tally.extend(other.tally);
        self.lost += other.lost;
        self.receipts.extend(other.receipts);
    }
}

impl Content {
    /// All events of a run that the rules route to the sink. Positions up to `counted` are counted already.
    pub(crate) fn new(
        segments: Segments,
        lane: Lane,
        (first, last): (u64, u64),
        dead_lettered: Arc<BTreeSet<u64>>,
        rules: RouteFilter,
        counted: u64,
    ) -> Self {
        Self {
            lane,
            segments,
            at_hand: None,
            reader: None,
            first,
            last,
            kept: None,
            period: None,
            others: BTreeMap::new(),
            counts_rest: true,
            dead_lettered,
            rules,
            counted,
            outcomes: BTreeMap::new(),
            lost: 0,
        }
    }

    /// Only the events that this object of the run keeps. The first object counts the events that none of them keeps.
    pub(crate) fn keeping(self, intent: &ObjectIntent, object: usize) -> Self {
        let of_object = intent.objects.get(object);
        let kept = of_object.map(|object| object.kept.clone()).unwrap_or_default();
        let period = of_object.and_then(|object| object.manifest.period);
        let mut others = BTreeMap::<String, BTreeSet<Option<Period>>>::new();
        for (_, other) in intent.objects.iter().enumerate().filter(|(index, _)| *index != object) {
            for type_name in other.kept.keys() {
                others.entry(type_name.clone()).or_default().insert(other.manifest.period);
            }
        }
        Self { kept: Some(kept), period, others, counts_rest: object == 0, ..self }
    }

    /// Whether this object examines an event.
    fn has_part_in(&self, record: &JournalRecord<'_>) -> bool {
        match &self.kept {
            Some(kept) if !self.counts_rest => kept.contains_key(record.type_name) && self.is_of_period(record),
            _ => self.others.get(record.type_name).is_none_or(|periods| !periods.contains(&self.period_of(record))),
        }
    }

    /// All objects of a run have periods of the same unit, or none.
    fn period_of(&self, record: &JournalRecord<'_>) -> Option<Period> {
        self.period.map(|period| period.again(as_sent(record, 0).naming_time()))
    }

    fn is_of_period(&self, record: &JournalRecord<'_>) -> bool {
        self.period_of(record) == self.period
    }

    /// Does not read the first block if it is this one: one large block may yield many objects.
    pub(crate) fn with_at_hand(self, chunk: Option<&LogChunk>) -> Self {
        let at_hand = match chunk {
            Some(LogChunk::Block(block)) if (block.header().first..block.header().end()).contains(&self.first) => {
                Some(block.clone())
            }
            _ => None,
        };
        Self { at_hand, ..self }
    }

    fn read(&mut self) -> io::Result<Option<LogChunk>> {
        if let Some(block) = self.at_hand.take() {
            self.reader = Some(Reader::new(self.segments.clone(), block.header().end()));
            return Ok(Some(LogChunk::Block(block)));
        }
        let reader = self.reader.get_or_insert_with(|| Reader::new(self.segments.clone(), self.first));
        reader.read(self.last)
    }

    /// What became of the events.
    pub(crate) fn account(self) -> Account {
        let mut account = Account { lost: self.lost, ..Account::default() };
        for (name, (outcomes, receipts)) in self.outcomes {
            account.tally.push((name.clone(), outcomes));
            account.receipts.push((name, receipts));
        }
        account
    }

    fn part(&mut self, chunk: &LogChunk) -> Batch {
        let mut part = Batch::new(self.lane.clone(), self.first);
        match chunk {
            LogChunk::Block(block) => {
                let bytes = block.bytes();
                block.records_from(self.first).for_each(|(at, record)| self.take(at, &record, bytes, &mut part));
            }
            LogChunk::Damaged(damaged) => {
                let bytes = damaged.bytes();
                damaged.survivors().iter().for_each(|(at, record)| self.take(*at, record, bytes, &mut part));
            }
        }
        // A damaged range belongs to the run in which it ends.
        if self.counts_rest && chunk.end() - 1 <= self.last {
            self.lost += chunk.finding().map_or(0, Finding::lost_count);
        }
        part
    }

    fn keeps(&mut self, sequence: u64, record: &JournalRecord<'_>, slot: Option<usize>) -> bool {
        let verdict = match &self.kept {
            None => slot.map(|slot| self.rules.judge(slot, sequence, record.payload)),
            Some(_) if !self.is_of_period(record) => None,
            Some(kept) => {
                let passage = kept.get(record.type_name).filter(|passage| passage.covers(sequence));
                passage.map(|passage| passage.judge(sequence, record.payload, &mut 0))
            }
        };
        // Undecided events became dead letters before the object was committed.
        verdict == Some(RouteDecision::Taken)
    }

    fn take(&mut self, sequence: u64, record: &JournalRecord<'_>, block: &Bytes, part: &mut Batch) {
        if !(self.first..=self.last).contains(&sequence) || !self.has_part_in(record) {
            return;
        }
        let slot = self.rules.slot_of(record.type_name, sequence);
        let is_dead_lettered = self.dead_lettered.contains(&sequence);
        let is_kept = !is_dead_lettered && self.keeps(sequence, record, slot);
        if is_kept {
            part.push(block, &as_sent(record, sequence));
        }
        if let Some(name) = slot.filter(|_| sequence > self.counted).and_then(|slot| self.rules.name(slot)) {
            let (outcomes, receipts) = match self.outcomes.get_mut(name) {
                Some(counted) => counted,
                None => self.outcomes.entry(name.clone()).or_default(),
            };
            if is_kept {
                receipts.add(record.received_at);
            }
            *(match (is_dead_lettered, is_kept) {
                (true, _) => &mut outcomes.dead,
                (false, true) => &mut outcomes.stored,
                (false, false) => &mut outcomes.skipped,
            }) += 1;
        }
    }
}

impl Parts for Content {
    fn next(&mut self) -> Result<Option<Batch>, NoParts> {
        loop {
            let read = self.read().map_err(|error| {
                NoParts(format!("can't read the journal: {error}. Check the disk of the data directory").into())
            })?;
            let Some(chunk) = read else { return Ok(None) };
            let part = self.part(&chunk);
            if !part.is_empty() {
                return Ok(Some(part));
            }
        }
    }

    fn again(&self) -> Box<dyn Parts> {
        let run = (self.first, self.last);
        let again = Self::new(
            self.segments.clone(),
            self.lane.clone(),
            run,
            self.dead_lettered.clone(),
            self.rules.again(),
            self.counted,
        );
        let (kept, period, others) = (self.kept.clone(), self.period, self.others.clone());
        Box::new(Self { kept, period, others, counts_rest: self.counts_rest, ..again })
    }
}
