//! A single event as the log has it, for operators.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use event::{EventId, TraceParent, TypeName};
use journal::{JournalRecord, LogChunk, Reader};

use crate::committed_log::CommittedLog;

/// The block that an event is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Its number among the blocks of all shards of the process that wrote it.
    pub number: u64,
    /// The sequence of its first event.
    pub first: u64,
    /// How many sequences it covers.
    pub events: u32,
    /// When it was written: microseconds since 1970, UTC. Its events were durable a few milliseconds later.
    pub written_at: i64,
}

/// An event that the log still has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its sequence.
    pub sequence: u64,
    /// Its id.
    pub id: EventId,
    /// Its type's name.
    pub type_name: TypeName,
    /// The source that sent it, or empty.
    pub source: String,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// When it happened, if its type names a time: microseconds since 1970, UTC.
    pub event_time: Option<i64>,
    /// The trace that its request was a part of.
    pub trace: Option<TraceParent>,
    /// The JSON text.
    pub payload: Vec<u8>,
    /// Its block; `None` if the block is damaged.
    pub block: Option<BlockInfo>,
}

impl LoggedEvent {
    /// `None` for a record that isn't an event, such as a tick of an aggregate.
    fn of(sequence: u64, record: &JournalRecord<'_>, chunk: &LogChunk) -> Option<Self> {
        let block = match chunk {
            LogChunk::Block(block) => {
                let header = block.header();
                let (first, written_at) = (header.first, header.written_at);
                Some(BlockInfo { number: header.number, first, events: header.span, written_at })
            }
            LogChunk::Damaged(_) => None,
        };
        Some(Self {
            sequence,
            id: record.id,
            type_name: TypeName::new(record.type_name).ok()?,
            source: record.source.into(),
            client: record.client,
            received_at: record.received_at,
            event_time: record.event_time,
            trace: record.trace,
            payload: record.payload.to_vec(),
            block,
        })
    }

    /// The first event in these sequences that is wanted; `None` if there is none within `longest`.
    pub(crate) fn find(
        log: &CommittedLog,
        sequences: RangeInclusive<u64>,
        longest: Duration,
        is_wanted: impl Fn(u64, &JournalRecord<'_>) -> bool,
    ) -> io::Result<Option<Self>> {
        let (first, last) = (*sequences.start(), *sequences.end());
        let last = last.min(log.durable());
        if log.segments().oldest().is_none_or(|oldest| last < oldest) {
            return Ok(None);
        }
        let (mut reader, begun) = (Reader::new(log.segments().clone(), first), Instant::now());
        while reader.next() <= last && begun.elapsed() < longest {
            let Some(chunk) = reader.read(log.durable())? else { break };
            let mut within = chunk.records().filter(|(at, _)| sequences.contains(at));
            if let Some((at, record)) = within.find(|(at, record)| is_wanted(*at, record)) {
                return Ok(Self::of(at, &record, &chunk));
            }
        }
        Ok(None)
    }
}
