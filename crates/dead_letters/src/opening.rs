//! Opens the journal of a sink's dead letters. What it has lost is recorded durably before the journal is used.

use std::io;
use std::sync::atomic::Ordering;

use eventlog::{Finding, Loss, LostFrom, OpenShard, Reader, ShardOptions, find_shard, make_directory};
use ledger::Recount;

use crate::blocked::Blocked;
use crate::dead_record::DeadRecord;
use crate::deferred::Deferred;
use crate::index::Index;
use crate::low_watermark::LowWatermark;
use crate::{DIRECTORY, DeadLetters, FIRST_SEGMENT_BYTES, Journal, SEGMENT_BYTES_MAX, later};

impl DeadLetters {
    /// The journal makes its own directory durable within the one above, but not that one.
    pub(super) fn open(&self) -> Result<Journal, Blocked> {
        make_directory(&*self.files.disk, &self.files.data.join(DIRECTORY)).map_err(later)?;
        let counted = self.ledger.dead_up_to(&self.sink);
        let options = ShardOptions {
            first_segment_bytes: FIRST_SEGMENT_BYTES,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            segments_ahead: false,
            // A position that the ledger has counted is never given to another record.
            next_at_least: counted + 1,
            ..ShardOptions::new(self.files.disk.clone(), self.directory(), self.files.origin, 0)
        };
        let found = find_shard(&options)?;
        let mut low_watermark = LowWatermark::open(self.files.disk.clone(), &self.directory()).map_err(later)?;
        let mut missing = found.findings().to_vec();
        missing.extend(found.oldest().and_then(|oldest| low_watermark.missing(oldest)));
        // Before the journal continues after the gap.
        self.note_lost(&missing, counted)?;
        low_watermark.note(found.oldest().unwrap_or(1)).map_err(later)?;
        let OpenShard { appender, committer, segments, durable, mut findings } = found.open()?;
        let reader = Reader::new(segments.clone(), 1);
        let mut deferred = Deferred::default();
        let read = read_index(reader, durable, counted, &mut deferred, &mut findings).map_err(later)?;
        let (index, recounts) = read;
        self.deferred_count.store(deferred.count(), Ordering::Relaxed);
        *self.deferred() = deferred;
        self.note_lost(&findings, counted)?;
        let sink = &*self.sink;
        findings.iter().for_each(|finding| tracing::warn!(sink, "dead letters: {finding}"));
        self.losses().iter().for_each(|loss| tracing::warn!(sink, "{}", loss.message()));
        // What was durable but is not in the saved ledger.
        self.ledger.count_dead(&self.sink, durable, &recounts);
        Ok(Journal {
            appender,
            committer,
            segments,
            index,
            low_watermark,
            durable,
            readers: 0,
            kept_from: None,
            freed_at: None,
        })
    }

    fn note_lost(&self, findings: &[Finding], counted: u64) -> Result<(), Blocked> {
        self.files.losses.add(&LostFrom::Dead(self.sink.to_string()), findings, counted).map_err(later)
    }

    /// Losses of this journal that the operator hasn't accepted yet.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        let mut losses = self.files.losses.open_ones();
        losses.retain(|loss| matches!(&loss.from, LostFrom::Dead(sink) if **sink == *self.sink));
        losses
    }
}

/// Reads all records once, and collects what those after `counted` change in the ledger. Damage in older segments is
/// added to what recovery found in the newest.
fn read_index(
    mut reader: Reader,
    last: u64,
    counted: u64,
    deferred: &mut Deferred,
    findings: &mut Vec<Finding>,
) -> io::Result<(Index, Vec<Recount>)> {
    let mut index = Index::default();
    let mut recounts = Vec::new();
    while let Some(chunk) = reader.read(last)? {
        for (at, record) in DeadRecord::all_in(&chunk) {
            let ended = deferred.note(at, &record);
            recounts.extend(index.note(at, &record).or(ended).filter(|_| at > counted));
        }
        let known =
            |new: &Finding| findings.iter().any(|old| (old.generation, old.offset) == (new.generation, new.offset));
        if let Some(new) = chunk.finding().filter(|new| !known(new)) {
            findings.push(new.clone());
        }
    }
    Ok((index.opened(), recounts))
}
