//! Dead letters that are handled together.

use event::Lane;
use eventlog::LogChunk;
use limits::memory::Budgets;
use sink::{Batch, Claim};

use crate::dead_record::DeadRecord;
use crate::sent_record::as_sent;

/// A dead letter: its position in the journal of dead letters, and the number that it is sent under.
pub(super) type Numbered = (u64, u64);

/// Dead letters that are handled together, and the bytes that they are slices of.
#[derive(Default)]
pub(super) struct Page {
    pub(super) chunks: Vec<LogChunk>,
    /// Positions in the journal of dead letters, ascending.
    pub(super) positions: Vec<u64>,
    pub(super) payload_bytes: usize,
    pub(super) held_bytes: usize,
}

impl Page {
    pub(super) fn is_full(&self, memory: &Budgets) -> bool {
        self.positions.len() >= memory.delivery_records
            || self.payload_bytes >= memory.delivery_bytes
            || self.held_bytes >= memory.delivery_held_bytes()
    }

    /// Adds a chunk, if any of the dead letters at these positions is in it.
    pub(super) fn add(&mut self, chunk: LogChunk, wanted: &[u64]) {
        let before = self.positions.len();
        for (at, record) in chunk.records().filter(|(at, _)| wanted.binary_search(at).is_ok()) {
            self.positions.push(at);
            self.payload_bytes += record.payload.len();
        }
        if self.positions.len() > before {
            self.held_bytes += chunk.bytes().len();
            self.chunks.push(chunk);
        }
    }

    /// The positions of the dead letters.
    pub(super) fn positions(&self) -> &[u64] {
        &self.positions
    }

    /// The dead letters at these positions, which ascend.
    pub(super) fn records(&self, wanted: &[u64]) -> Vec<DeadRecord<'_>> {
        let records = self.chunks.iter().flat_map(DeadRecord::all_in);
        records.filter(|(at, _)| wanted.binary_search(at).is_ok()).map(|(_, record)| record).collect()
    }

    /// These dead letters as a batch after `cursor`.
    pub(super) fn batch(&self, (lane, claim): (&Lane, Claim), cursor: u64, part: &[Numbered]) -> Batch {
        // Each dead letter was passed to the sink before.
        let mut batch = Batch::new(lane.clone(), cursor + 1).claimed_by(claim).sent_after(cursor, u64::MAX);
        for chunk in &self.chunks {
            for (at, record) in chunk.records() {
                if let Ok(index) = part.binary_search_by_key(&at, |(at, _)| *at) {
                    batch.push(chunk.bytes(), &as_sent(&record, part[index].1));
                }
            }
        }
        batch
    }
}
