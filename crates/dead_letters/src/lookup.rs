//! Looks up which events of a request are dead letters, or were, and why.

use std::io;

use event::{EventId, Position};
use eventlog::{DeadLetterReason, LogChunk, Reader, RejectedEvent, Rejections, SequenceRange, WatchRequest};

use crate::dead_record::DeadRecord;
use crate::index::Located;
use crate::reasons;
use crate::{DeadLetters, Journal};

impl DeadLetters {
    /// Adds the events that this sink has rejected, at most `limit` of them with their reasons.
    pub fn add_refused(&self, asked: &WatchRequest, limit: usize, refusals: &mut Rejections) {
        let found = self.with_existing(|journal| {
            let mut cache = RecordCache { journal, last: None };
            asked.spans.iter().for_each(|span| self.add_within(span, limit, &mut cache, refusals));
        });
        if found.is_err() {
            refusals.unknown.push(self.sink.clone());
        }
    }

    fn add_within(&self, span: &SequenceRange, limit: usize, cache: &mut RecordCache<'_>, refusals: &mut Rejections) {
        let found: Vec<Located> = cache.journal.index.within(span).collect();
        let mut left = limit - limit.min(refusals.listed.iter().filter(|refused| refused.sink == self.sink).count());
        for located in found {
            if span.only.is_none() && left == 0 {
                refusals.count += 1;
                continue;
            }
            // The index has no ids: the record has.
            let Some((id, reason)) = cache.read(located.at).ok().flatten() else {
                if refusals.unknown.last() != Some(&self.sink) {
                    refusals.unknown.push(self.sink.clone());
                }
                continue;
            };
            if span.only.as_ref().is_some_and(|only| !only.contains(&id)) {
                continue;
            }
            refusals.count += 1;
            if left > 0 {
                left -= 1;
                let reason = if located.is_held { reason } else { DeadLetterReason::Dropped };
                let position = Position { shard: span.shard, sequence: located.sequence };
                refusals.listed.push(RejectedEvent { sink: self.sink.clone(), id, position, reason });
            }
        }
    }
}

/// Dead letters of which many are in one block.
struct RecordCache<'a> {
    journal: &'a Journal,
    last: Option<LogChunk>,
}

impl RecordCache<'_> {
    /// The id and the reason of the dead letter at this position, if it can be read.
    fn read(&mut self, at: u64) -> io::Result<Option<(EventId, DeadLetterReason)>> {
        if let Some(found) = self.last.as_ref().and_then(|chunk| rejection_at(chunk, at)) {
            return Ok(Some(found));
        }
        let mut reader = Reader::new(self.journal.segments.clone(), at);
        self.last = reader.read(self.journal.durable)?;
        Ok(self.last.as_ref().and_then(|chunk| rejection_at(chunk, at)))
    }
}

fn rejection_at(chunk: &LogChunk, at: u64) -> Option<(EventId, DeadLetterReason)> {
    let (_, record) = DeadRecord::all_in(chunk).find(|(position, _)| *position == at)?;
    Some((record.event.id, reasons::code(record.reason)))
}
