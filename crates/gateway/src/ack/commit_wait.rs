//! **When the 200 is sent**: once the event, or each good record of the batch, is durable.
//!
//! A handler appends to the log of its shard ([`crate::append`]) and waits here. The shard's runtime commits all appended events as one
//! block when it is about to park (`shard::commit_trigger`), or within a long tick. The log writes and syncs the block, and then
//! resolves the futures that are awaited here. A duplicate waits for its original. With `Forebay-Ack: stored` the handlers then wait in
//! [`super::until_delivered`]; with `memory` they don't wait.

use event::Position;
use eventlog::{AppendError, WatchRequest};

use super::until_delivered;
use crate::append::PendingCommit;
use crate::ingest::{AckMode, RecordBuilder};
use crate::problem::Refused;
use crate::shard::ShardContext;

/// Waits until an event, or its original, is durable. Returns its position, and whether it is a duplicate.
pub(crate) async fn wait(shard: &ShardContext, commit: PendingCommit<'_>) -> Result<(Position, bool), Refused> {
    match commit {
        PendingCommit::Own(append) => {
            let position = append.position();
            append.await?;
            Ok((position, false))
        }
        PendingCommit::Original(original) => {
            let position = original.durable().await?;
            shard.cells().duplicates.add(1);
            Ok((position, true))
        }
    }
}

/// Waits until the appended records of a batch, and the originals of duplicates, are durable. With `Forebay-Ack: memory` it waits for
/// nothing. Returns what [`super::until_delivered`] needs to wait on.
pub(crate) async fn wait_batch(
    shard: &ShardContext,
    ack: AckMode,
    builder: &mut RecordBuilder,
    commit: Option<PendingCommit<'_>>,
) -> Result<WatchRequest, Refused> {
    let mut asked = WatchRequest::default();
    let count = builder.batch.records().len();
    // The records are in the block now, or are those of their originals: while the disk is busy, memory holds none twice.
    shard.give_back_records(builder.batch.take_records());
    let mut copies = Vec::new();
    match commit {
        Some(PendingCommit::Own(append)) => {
            builder.position = Some(append.position());
            asked.spans.push(until_delivered::new_span(append.position(), u64::from(count)));
            if ack != AckMode::Memory {
                append.await?;
            }
        }
        Some(PendingCommit::Original(original)) => {
            if ack != AckMode::Memory {
                let position = original.durable().await?;
                builder.position = Some(position);
                copies.push((position, None));
            }
            builder.count_all_as_duplicates();
        }
        None => {}
    }
    let originals = builder.take_originals();
    if builder.batch.options.atomic && builder.refused_count() > 0 {
        // Nothing was appended: an original in the same batch never becomes durable.
        return Ok(asked);
    }
    if ack == AckMode::Memory {
        return Ok(asked);
    }
    for original in originals {
        builder.position.get_or_insert(original.position());
        copies.push((original.position(), Some(original.id())));
    }
    if ack == AckMode::Stored {
        asked.types = builder.types().map(|known| known.name.clone()).collect();
        until_delivered::add_copies(shard, copies, &mut asked).await;
    }
    Ok(asked)
}

/// Waits until the originals of events that transforms dropped as duplicates are durable.
pub(crate) async fn wait_for_filtered(
    shard: &ShardContext,
    ack: AckMode,
    builder: &RecordBuilder,
) -> Result<(), Refused> {
    if ack == AckMode::Memory || !builder.depends_on_others() {
        return Ok(());
    }
    wait_for_others(shard, builder.refused_commits).await
}

/// Waits until the originals of a dropped duplicate are durable. It isn't known which events they are, but they were appended before: so it
/// is enough to wait until all appended events are durable.
pub(crate) async fn wait_for_others(shard: &ShardContext, refused_commits: u64) -> Result<(), Refused> {
    for log in &*shard.shared.shards {
        log.flush().await;
        if log.has_failed() {
            return Err(AppendError::Failed.into());
        }
    }
    if shard.refused_commits() == refused_commits {
        return Ok(());
    }
    Err(AppendError::NoSpace.into())
}
