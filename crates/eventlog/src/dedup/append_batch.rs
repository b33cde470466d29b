//! The input of an append of several events, and the dedup result of it.

use std::collections::{BTreeMap, BTreeSet};

use event::EventId;
use journal::{DedupKey, JournalRecord, RecordBuffer};

use super::original::Original;
use crate::type_registry::TypeId;

/// Payloads that conflict with an id are kept up to this many bytes.
const CONFLICT_BYTES_MAX: usize = 1024 * 1024;

/// The events of a batch, ready to be appended; and after the append, its duplicates and the lines that it rejected.
#[derive(Default)]
pub struct AppendBatch {
    records: RecordBuffer,
    /// For each record its source line.
    lines: Vec<SourceLine>,
    type_counts: Vec<(TypeId, u64)>,
    pub(super) key: Option<DedupKey>,
    /// The records with ids of clients, in their order.
    pub(super) own_ids: Vec<OwnId>,
    pub(super) dependent_lines: Vec<u32>,
    pub(super) indexes_individually: bool,
    /// The options of the append.
    pub options: AppendOptions,
    /// The result of the last append.
    pub result: DedupResult,
}

/// How a batch is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendOptions {
    /// Nothing of it is appended if an id of it conflicts.
    pub atomic: bool,
    /// It is appended only if the originals of its duplicates are durable. Set it unless the client gets the response before the commit.
    pub wait_for_originals: bool,
    /// The payloads of this many lines that conflict with an id are kept.
    pub conflicts_kept_max: usize,
}

/// The result of the dedup lookup of a batch.
#[derive(Default)]
pub struct DedupResult {
    /// The numbers of records that are duplicates, with the same bytes, and their originals.
    pub duplicates: Vec<(u32, Original)>,
    /// The lines that weren't appended.
    pub rejected: BTreeMap<u32, LineRejection>,
    /// The first payload of each of some lines that conflict with an id, by line.
    pub conflicts: BTreeMap<u32, Box<[u8]>>,
}

/// The source line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The number of the line, or of another unit that the client sent. Later records have no smaller one.
    pub number: u32,
    /// The type of all its records.
    pub type_id: TypeId,
}

/// A record with a separate index entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnId {
    /// Its number among the batch's records, from 0.
    pub(super) number: u32,
    pub(super) id: EventId,
    /// The hash of its payload, or of the batch if the id was derived from the batch's key.
    pub(super) content: u64,
}

/// Why a line isn't appended while the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRejection {
    /// Another event has one of its ids, with other bytes.
    IdConflict,
    /// A part of it was left out as a duplicate of a line that is rejected.
    DependsOnRejected,
}

impl AppendBatch {
    /// Fills this buffer, which must be empty, instead of a new one.
    pub fn reuse_buffer(&mut self, records: RecordBuffer) {
        debug_assert!(self.records.is_empty() && records.is_empty(), "a batch gets its buffer before its records");
        self.records = records;
    }

    /// Adds a record of `line`. A record with a content hash gets a separate index entry.
    pub fn push(&mut self, record: &JournalRecord<'_>, line: SourceLine) {
        if let Some(content) = record.content {
            self.own_ids.push(OwnId { number: self.records.len(), id: record.id, content });
        }
        self.records.push(record);
        self.lines.push(line);
        match self.type_counts.iter_mut().rfind(|(counted, _)| *counted == line.type_id) {
            Some((_, count)) => *count += 1,
            None => self.type_counts.push((line.type_id, 1)),
        }
    }

    /// Ends the request with the last record.
    pub fn end_request(&mut self) {
        self.records.end_request();
    }

    /// The events. An append drops duplicates from them.
    #[must_use]
    pub const fn records(&self) -> &RecordBuffer {
        &self.records
    }

    /// Takes the buffer of the events, to fill it again.
    #[must_use]
    pub fn take_records(&mut self) -> RecordBuffer {
        std::mem::take(&mut self.records)
    }

    /// For each record that was added, its source line.
    #[must_use]
    pub fn lines(&self) -> &[SourceLine] {
        &self.lines
    }

    /// How many events there are of each type.
    #[must_use]
    pub fn type_counts(&self) -> &[(TypeId, u64)] {
        &self.type_counts
    }

    /// Whether each record has a separate index entry.
    #[must_use]
    pub fn have_own_ids(&self) -> bool {
        self.own_ids.len() == self.records.len() as usize
    }

    /// Bytes that it takes in memory, without the buffer's spare capacity.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes() + size_of_val(self.own_ids.as_slice()) + size_of_val(self.lines.as_slice())
    }

    /// The id and the content hash of the batch as a whole.
    pub const fn set_key(&mut self, key: DedupKey) {
        self.key = Some(key);
    }

    /// A part of this line was left out as a duplicate of a line before it: the append accepts or rejects both.
    pub fn add_dependent_line(&mut self, line: u32) {
        self.dependent_lines.push(line);
    }

    /// Gives each record a separate index entry: a retry then appends exactly the missing records. Call it, after
    /// [`Self::set_key`], if the batch doesn't have all that the client sent: some was rejected, or dropped as a
    /// duplicate of another event. The records take more bytes.
    pub fn index_individually(&mut self) {
        let Some(key) = self.key.filter(|_| !self.indexes_individually) else { return };
        let indexed: BTreeSet<u32> = self.own_ids.iter().map(|own| own.number).collect();
        self.records.set_contents(key.content, |number| indexed.contains(&number));
        let derived = (0..).zip(self.records.ids()).filter(|(number, _)| !indexed.contains(number));
        self.own_ids.extend(derived.map(|(number, id)| OwnId { number, id, content: key.content }));
        self.own_ids.sort_unstable_by_key(|own| own.number);
        self.indexes_individually = true;
    }

    /// Whether an id of it was chosen by a client.
    pub(crate) fn may_have_duplicates(&self) -> bool {
        self.key.is_some() || !self.own_ids.is_empty()
    }

    /// The number of a record's source line.
    pub(super) fn line_of(&self, record: u32) -> u32 {
        line_of(&self.lines, record)
    }

    /// Writes the key into the last record.
    pub(super) fn write_key(&mut self, key: DedupKey) {
        self.records.set_batch(key);
    }

    /// Drops the duplicates, and the records of lines that are rejected.
    pub(super) fn apply(&mut self, mut result: DedupResult) {
        if result.duplicates.is_empty() && result.rejected.is_empty() {
            return;
        }
        if self.options.conflicts_kept_max > 0 && !result.rejected.is_empty() {
            result.conflicts = self.conflicts(&result.rejected);
        }
        // There may be a hundred thousand, and the shard waits: so both are walked in order, without a set.
        let Self { records, lines, type_counts, .. } = self;
        let mut duplicates = result.duplicates.iter().map(|(number, _)| *number).peekable();
        let mut is_dropped = |number| {
            let is_duplicate = duplicates.next_if_eq(&number).is_some();
            is_duplicate || result.rejected.contains_key(&line_of(lines, number))
        };
        records.retain(|number| {
            let is_dropped = is_dropped(number);
            if is_dropped && let Some(line) = lines.get(number as usize) {
                let counted = type_counts.iter_mut().find(|(type_id, _)| *type_id == line.type_id);
                counted.into_iter().for_each(|(_, events)| *events -= 1);
            }
            !is_dropped
        });
        self.result = result;
    }
}

impl AppendBatch {
    /// The first payloads of lines that conflict with an id, as many as are kept.
    fn conflicts(&self, rejected: &BTreeMap<u32, LineRejection>) -> BTreeMap<u32, Box<[u8]>> {
        let (mut conflicts, mut bytes) = (BTreeMap::new(), 0);
        for (line, payload) in self.lines.iter().zip(self.records.payloads()) {
            if conflicts.len() >= self.options.conflicts_kept_max || bytes >= CONFLICT_BYTES_MAX {
                break;
            }
            if rejected.get(&line.number) == Some(&LineRejection::IdConflict) && !conflicts.contains_key(&line.number) {
                bytes += payload.len();
                conflicts.insert(line.number, payload.into());
            }
        }
        conflicts
    }
}

fn line_of(lines: &[SourceLine], record: u32) -> u32 {
    lines.get(record as usize).map_or(record, |line| line.number)
}
