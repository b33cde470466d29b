//! An event that its type's transform has dropped or split into several.

use eventlog::WatchRequest;
use transform::Filtered;

use super::quarantine;
use crate::ack::commit_wait::{wait_batch, wait_for_filtered, wait_for_others};
use crate::ack::response::{self as ack_response, SingleEvent};
use crate::ack::until_delivered;
use crate::admission::Permit;
use crate::append::append_batch;
use crate::event_types::Slot;
use crate::ingest::{AckMode, IngestParams, RecordBuilder};
use crate::problem::{Problem, Refused};
use crate::responses;
use crate::shard::ShardContext;
use http1::Response;

/// An event that was dropped, or split into several.
pub(crate) enum TransformedEvent {
    Filtered {
        by: Filtered,
        slot: Slot,
        /// Commits that had been rejected before the transform ran.
        refused_commits: u64,
    },
    Several {
        builder: Box<RecordBuilder>,
        /// What was sent, if it is stored when it is rejected.
        sent: Option<Box<[u8]>>,
    },
}

impl TransformedEvent {
    /// The response, when the event is acknowledged as asked.
    pub(crate) async fn respond(
        self,
        shard: &ShardContext,
        params: &IngestParams,
        permit: Permit<'_>,
    ) -> Result<Response, Refused> {
        match self {
            Self::Filtered { by, slot, refused_commits } => {
                if by.is_duplicate() {
                    wait_for_others(shard, refused_commits).await?;
                }
                shard.filters().add(&shard.types().get(slot).name, by, 1);
                Ok(if params.json { responses::of_filtered_as_json(by) } else { Response::ok() })
            }
            Self::Several { builder, sent } => respond_to_several(shard, params, permit, *builder, sent).await,
        }
    }
}

async fn respond_to_several(
    shard: &ShardContext,
    params: &IngestParams,
    mut permit: Permit<'_>,
    mut builder: RecordBuilder,
    sent: Option<Box<[u8]>>,
) -> Result<Response, Refused> {
    permit.admit(builder.bytes())?;
    let events = builder.batch.records().len();
    let ack = params.ack.of_types(builder.types());
    let Some(id) = builder.first_id else {
        // All of them were dropped.
        wait_for_filtered(shard, ack, &builder).await?;
        shard.count_filtered(&builder);
        let by = builder.filtered_by().next().map(|(_, by, _)| by).filter(|_| params.json);
        return Ok(by.map_or_else(Response::ok, responses::of_filtered_as_json));
    };
    wait_for_filtered(shard, ack, &builder).await?;
    let asked = match append_several(shard, ack, &mut builder).await {
        Ok(asked) => asked,
        Err(problem) => {
            let problem = Box::new(Problem { type_name: builder.own_type().map(Box::new), ..*problem });
            sent.iter().for_each(|bytes| quarantine::add(shard, builder.envelope(), &problem, bytes));
            return Err(problem);
        }
    };
    drop(sent);
    shard.count_filtered(&builder);
    let duplicate = builder.duplicates > 0;
    shard.cells().duplicates.add(builder.duplicates);
    let Some(position) = builder.position.filter(|_| ack != AckMode::Memory) else {
        return Ok(ack_response::of_event_in_memory(id, duplicate));
    };
    if ack == AckMode::Stored {
        builder.forget_records();
        drop(permit);
        let status = until_delivered::wait(shard, asked).await;
        return Ok(ack_response::of_event(&SingleEvent { id, position, duplicate }, &status, params.json));
    }
    Ok(if params.json { responses::of_several_as_json(id, position, duplicate, events) } else { Response::ok() })
}

async fn append_several(
    shard: &ShardContext,
    ack: AckMode,
    builder: &mut RecordBuilder,
) -> Result<WatchRequest, Refused> {
    let commit = append_batch(shard, ack, builder).await?;
    let asked = wait_batch(shard, ack, builder, commit).await?;
    if builder.refused_count() > 0 { Err(Problem::id_reused().into()) } else { Ok(asked) }
}
