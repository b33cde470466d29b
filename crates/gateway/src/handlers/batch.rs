//! `POST /ingest/batch`: many payloads, whose good ones become durable together.

use eventlog::{AppendError, WatchRequest};
use limits::BATCH_BYTES_MAX;

use super::event::{COMMIT, INGEST, end_step};
use super::{batch_stream, quarantine};
use crate::ack::commit_wait::{wait_batch, wait_for_filtered};
use crate::ack::{batch_summary, response as ack_response, until_delivered};
use crate::admission::Body;
use crate::append::append_batch;
use crate::error_code::ErrorCode;
use crate::ingest::{AckMode, Envelope, IngestParams, RecordBuilder};
use crate::problem::Refused;
use crate::responses;
use crate::shard::ShardContext;
use http1::Response;
use spans::Steps;

/// Payloads of a batch's lines that the log keeps if they conflict with an id: as many as are stored at a time.
const CONFLICTS_KEPT_MAX: usize = 100;

/// Accepts a batch. The response is ready when its good records are durable.
pub(crate) async fn handle(
    shard: &ShardContext,
    params: &IngestParams,
    envelope: Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    if shard.log.is_short_of_space() {
        // Checked before the body is read: it may have 32 MiB.
        return Err(AppendError::NoSpace.into());
    }
    if let Some(slot) = params.slot {
        let types = shard.types();
        types.get(slot).check()?;
        params.ack.check(types.get(slot))?;
    }
    params.check_reading(&shard.types())?;
    body.check_announced(BATCH_BYTES_MAX.min(shard.batch_bytes_max()))?;
    let mut permit = shard.batch_permit(shard.client(&envelope), body.announced()).await?;
    let mut steps = shard.steps(&envelope);
    let mut builder = shard.new_builder(params, params.slot, &envelope, &shard.types());
    builder.batch.reuse_buffer(shard.spare_records());
    let mut builder = batch_stream::parse(shard, builder, params.form, body, &mut permit).await?;
    permit.complete();
    if params.is_web_form {
        explain_one_line(&mut builder);
    }
    if let Some(problem) = builder.waits_for_a_store() {
        return Err(problem);
    }
    if params.atomic && builder.refused_count() > 0 {
        builder.refuse_all();
    }
    let ack = params.ack.of_types(builder.types());
    let asked = commit(shard, params, ack, &mut builder, &mut steps).await?;
    Ok(match ack {
        AckMode::Disk | AckMode::ByType => batch_summary::of_batch(&builder),
        AckMode::Memory => {
            let (summary, status) = batch_summary::of(&builder);
            responses::json(ack_response::not_yet(status), &summary)
        }
        AckMode::Stored => {
            // A durable batch is no longer in flight, however long its client waits: only the request for its status is.
            builder.forget_records();
            permit.shrink(asked.bytes() + builder.bytes());
            answer_when_stored(shard, &builder, asked).await
        }
    })
}

/// Appends the good records of a batch, waits until they are acknowledged as asked, or durable, and counts what became of the others.
///
/// # Errors
/// The batch as a whole is rejected.
pub(super) async fn commit(
    shard: &ShardContext,
    params: &IngestParams,
    ack: AckMode,
    builder: &mut RecordBuilder,
    steps: &mut Option<Steps<'_>>,
) -> Result<WatchRequest, Refused> {
    builder.batch.options.atomic = params.atomic;
    builder.batch.options.conflicts_kept_max = if builder.stores_rejected() { CONFLICTS_KEPT_MAX } else { 0 };
    wait_for_filtered(shard, ack, builder).await?;
    let commit = append_batch(shard, ack, builder).await?;
    end_step(steps, INGEST);
    let asked = wait_batch(shard, ack, builder, commit).await?;
    end_step(steps, COMMIT);
    if params.atomic && builder.refused_count() > 0 {
        builder.refuse_all();
    }
    count(shard, builder);
    // A large batch may have been committed within the tick, whose clock would then show no time passed.
    shard.clock.refresh();
    Ok(asked)
}

/// `curl -d @FILE` joins the lines of a file to one line, which isn't JSON.
fn explain_one_line(builder: &mut RecordBuilder) {
    if let [refusal] = &mut *builder.refused
        && refusal.code == ErrorCode::Json
        && !refusal.names_a_format()
        && builder.batch.records().is_empty()
    {
        refusal.add(
            "`curl -d` removes line breaks: send the lines of a file with --data-binary @FILE and \
             -H 'Content-Type: application/x-ndjson'",
        );
    }
}

/// The response when the batch is stored, or won't be soon.
async fn answer_when_stored(shard: &ShardContext, builder: &RecordBuilder, asked: WatchRequest) -> Response {
    if asked.spans.is_empty() {
        return batch_summary::of_batch(builder);
    }
    let delivery = until_delivered::wait(shard, asked).await;
    let (summary, status) = batch_summary::of(builder);
    ack_response::of_batch(summary, status, &delivery)
}

fn count(shard: &ShardContext, builder: &mut RecordBuilder) {
    shard.count_filtered(builder);
    let (counters, source) = (&shard.shared.counters, &builder.envelope().source);
    builder.tally.add_to(&counters.refusals, source);
    counters.refusal_samples.add_all(std::mem::take(&mut builder.tally.samples), builder.tally.rejected());
    quarantine::add_of_batch(shard, builder);
    shard.cells().duplicates.add(builder.duplicates);
}
