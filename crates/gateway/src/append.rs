//! The one append of a request's events to the log of its shard: a single event, or a batch. It doesn't wait for the commit:
//! [`crate::ack::commit_wait`] does.

use event::EventId;
use eventlog::{Append, AppendOutcome, JournalRecord, Original};

use crate::event_types::{Slot, TypeCache};
use crate::ingest::{AckMode, ChosenBy, ChosenId, Envelope, Event, RecordBuilder, WindowSet};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// The commit that makes events durable.
pub(crate) enum PendingCommit<'w> {
    /// They are appended.
    Own(Append<'w>),
    /// They are duplicates of this event or batch.
    Original(Original),
}

/// An event that was appended, or is a duplicate.
pub(crate) struct AppendedEvent<'w> {
    pub(crate) commit: PendingCommit<'w>,
    pub(crate) id: EventId,
    /// Its type.
    pub(crate) slot: Slot,
}

/// Appends a single event. `content` hashes the bytes that were sent.
///
/// # Errors
/// Another event has its id, or the log doesn't accept it.
pub(crate) fn append_event<'w>(
    shard: &'w ShardContext,
    envelope: &Envelope,
    types: &TypeCache,
    slot: Slot,
    event: Event<'_>,
    windows: &mut WindowSet,
    content: impl Fn() -> u64,
) -> Result<AppendedEvent<'w>, Refused> {
    let Event { payload, id: chosen, time } = event;
    let entry = types.get(slot);
    let id = chosen.map_or_else(|| shard.new_id(envelope.received_at), |chosen| chosen.id);
    let content = |chosen: ChosenId| match chosen.by {
        // Equal ids have equal bytes, except for white space around them.
        ChosenBy::Content => shard.shared.content_hash.of(&chosen.id.0),
        _ => content(),
    };
    let record = envelope.record(entry, id, entry.count_time(time), &payload);
    let record = JournalRecord { content: chosen.map(content), ..record };
    let commit = match shard.log.append_one(&record, entry.id)? {
        AppendOutcome::Appended(append) => {
            windows.keep();
            PendingCommit::Own(append)
        }
        AppendOutcome::Duplicate(original) => PendingCommit::Original(original),
        // The caller still has the bytes, which may be quarantined.
        AppendOutcome::IdConflict => return Err(Box::new(Problem::id_reused().of_type(&entry.name))),
    };
    Ok(AppendedEvent { commit, id, slot })
}

/// Appends the good records of a batch. `None`: nothing was appended, because there is no record, because all are duplicates, or because
/// an atomic batch has a rejected record.
///
/// # Errors
/// Its types have changed since it was built, another batch has its key, or the log doesn't accept it.
pub(crate) async fn append_batch<'w>(
    shard: &'w ShardContext,
    ack: AckMode,
    builder: &mut RecordBuilder,
) -> Result<Option<PendingCommit<'w>>, Refused> {
    if builder.batch.records().is_empty() {
        builder.check_types(shard.types().table())?;
        return Ok(None);
    }
    let mut batch = std::mem::take(&mut builder.batch);
    batch.options.wait_for_originals = ack != AckMode::Memory;
    let check = || builder.check_types(shard.types().table()).map_err(Refused::from);
    let outcome = shard.log.append_batch(&mut batch, check).await;
    builder.batch = batch;
    Ok(match outcome? {
        Some(AppendOutcome::Appended(append)) => {
            builder.keep_windows();
            Some(PendingCommit::Own(append))
        }
        Some(AppendOutcome::Duplicate(original)) => Some(PendingCommit::Original(original)),
        Some(AppendOutcome::IdConflict) => return Err(Problem::id_reused().into()),
        None => None,
    })
}
