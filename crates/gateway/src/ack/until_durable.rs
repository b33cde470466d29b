//! **When the 200 is sent**: once the event, or each good record of the batch, is durable.
//!
//! A handler appends to the log of its shard and waits here. The shard's runtime commits all appended events as one block when it is
//! about to park (`shard::commit_trigger`), or in the midst of a long tick. The log writes and syncs the block, and then resolves the
//! futures that are awaited here. A duplicate waits for its original. With `Forebay-Ack: stored` the handlers then wait in
//! [`super::until_delivered`]; with `memory` they don't wait.

use event::Position;
use eventlog::{AppendError, AppendOutcome, WatchRequest};

use super::until_delivered;
use crate::error_code::ErrorCode;
use crate::ingest::{AckMode, RecordBuilder};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// How often a batch is appended that depends on events which aren't durable yet. It waits for each block of others once, unless they
/// depend on it.
const APPENDS_MAX: usize = 16;

/// Waits until an event, or its original, is durable. Returns its position, and whether it is a duplicate.
pub(crate) async fn wait(shard: &ShardContext, taken: AppendOutcome<'_>) -> Result<(Position, bool), Refused> {
    let (result, duplicate) = match taken {
        AppendOutcome::Appended(append) => {
            let position = append.position();
            (append.await.map(|()| position), false)
        }
        AppendOutcome::Duplicate(earlier) => (earlier.durable().await, true),
        AppendOutcome::IdConflict | AppendOutcome::Partial | AppendOutcome::RetryAfter(_) | AppendOutcome::Empty => {
            return Err(Problem::id_reused().into());
        }
    };
    let position = result.map_err(|error| of_append(shard, error))?;
    if duplicate {
        shard.cells().duplicates.add(1);
    }
    Ok((position, duplicate))
}

/// Appends the good records of a batch, and waits until they, and the originals of duplicates, are durable. With `Forebay-Ack: memory` it
/// waits for nothing. Returns what [`super::until_delivered`] needs to wait on.
pub(crate) async fn append_batch(
    shard: &ShardContext,
    ack: AckMode,
    builder: &mut RecordBuilder,
) -> Result<WatchRequest, Refused> {
    let of_append = |error| of_append(shard, error);
    let mut asked = WatchRequest::default();
    if builder.batch.records().is_empty() {
        builder.check_types(shard.types().table())?;
        return Ok(asked);
    }
    shard.log.wait_for_capacity(builder.batch.records().bytes()).await;
    builder.batch.options.wait_for_originals = ack != AckMode::Memory;
    let taken = append_when_originals_are(shard, builder).await?;
    if let AppendOutcome::Appended(_) = taken {
        builder.keep_windows();
    }
    let count = builder.batch.records().len();
    // They stand in the block now, or in that of their first copies: while the disk takes its time none is held twice.
    shard.give_back_records(builder.batch.take_records());
    let mut copies = Vec::new();
    match taken {
        AppendOutcome::Appended(append) => {
            builder.position = Some(append.position());
            asked.spans.push(until_delivered::new_span(append.position(), u64::from(count)));
            if ack != AckMode::Memory {
                append.await.map_err(of_append)?;
            }
        }
        AppendOutcome::Duplicate(earlier) => {
            if ack != AckMode::Memory {
                let position = earlier.durable().await.map_err(of_append)?;
                builder.position = Some(position);
                copies.push((position, None));
            }
            builder.all_came_before();
        }
        AppendOutcome::IdConflict => return Err(Problem::id_reused().into()),
        AppendOutcome::Partial | AppendOutcome::RetryAfter(_) | AppendOutcome::Empty => {}
    }
    let met = builder.take_met();
    if builder.batch.options.atomic && builder.refused_count() > 0 {
        // Nothing was appended: a first copy that stood in the same batch never becomes durable.
        return Ok(asked);
    }
    if ack == AckMode::Memory {
        return Ok(asked);
    }
    for earlier in met {
        builder.position.get_or_insert(earlier.position());
        copies.push((earlier.position(), Some(earlier.id())));
    }
    if ack == AckMode::Stored {
        asked.types = builder.types().map(|known| known.name.clone()).collect();
        until_delivered::add_copies(shard, copies, &mut asked).await;
    }
    Ok(asked)
}

/// Appends a batch once the originals that it depends on are durable. Before that nothing of it is appended, so that nothing is stored of
/// a batch that is rejected.
async fn append_when_originals_are<'w>(
    shard: &'w ShardContext,
    builder: &mut RecordBuilder,
) -> Result<AppendOutcome<'w>, Refused> {
    for _ in 0..APPENDS_MAX {
        // No other task runs between this and the append.
        builder.check_types(shard.types().table())?;
        match shard.log.append(&mut builder.batch).map_err(|error| of_append(shard, error))? {
            AppendOutcome::Partial => builder.batch.index_individually(),
            // Where it is lost the batch takes its place.
            AppendOutcome::RetryAfter(earlier) => drop(earlier.durable().await),
            taken => return Ok(taken),
        }
    }
    Err(of_append(shard, AppendError::Busy))
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
            return Err(of_append(shard, AppendError::Failed));
        }
    }
    if shard.refused_commits() == refused_commits {
        return Ok(());
    }
    Err(of_append(shard, AppendError::NoSpace))
}

/// Why an append isn't durable, as its client sees it.
pub(crate) fn of_append(shard: &ShardContext, error: AppendError) -> Refused {
    let code = match error {
        AppendError::Busy => ErrorCode::Overload,
        AppendError::NoSpace => ErrorCode::DiskFull,
        AppendError::Failed => {
            shard.shared.readiness.fail();
            ErrorCode::JournalFailed
        }
    };
    Problem::boxed(code, error.to_string())
}
