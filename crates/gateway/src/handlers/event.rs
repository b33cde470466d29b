//! `POST /ingest/event`: one payload, which usually becomes one event. [`crate::ack::commit_wait`] decides when the 200 is sent.

use event::{EventId, Position};
use limits::EVENT_BYTES_MAX;

use super::quarantine;
use super::transformed_event::TransformedEvent;
use crate::ack::commit_wait;
use crate::admission::{Body, Permit};
use crate::append::{AppendedEvent, append_event};
use crate::event_types::cost::{self, CostBudget};
use crate::ingest::{
    Envelope, Epoch, IngestParams, Input, Made, Offloaded, Pipeline, PipelineError, Processed, RequestBudget,
    RequestKey, Unobserved, WindowSet, offload,
};
use crate::problem::Refused;
use crate::responses;
use crate::shard::ShardContext;
use http1::Response;
use spans::Steps;

/// Accepts an event. The response is ready when the event is durable.
pub(super) async fn handle(
    shard: &ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    let mut permit = shard.permit(shard.client(envelope));
    let mut steps = shard.steps(envelope);
    let ingested = ingest(shard, params, envelope, body, &mut permit).await?;
    end_step(&mut steps, INGEST);
    let AppendedEvent { commit, id, .. } = match ingested {
        Ingested::One(appended) => appended,
        Ingested::Otherwise(outcome) => return Box::pin(outcome.respond(shard, params, permit)).await,
    };
    let (position, duplicate) = commit_wait::wait(shard, commit).await?;
    end_step(&mut steps, COMMIT);
    Ok(respond(params, id, position, duplicate))
}

/// The step of a request up to the append: body, validation, transform.
pub(super) const INGEST: &str = "ingest";
/// The step from the append to the moment when the events are durable.
pub(super) const COMMIT: &str = "commit";

/// Ends a step of a request, if it is sampled.
pub(super) fn end_step(steps: &mut Option<Steps<'_>>, name: &str) {
    if let Some(steps) = steps {
        steps.end(name, clock::unix_microseconds());
    }
}

/// The response to an event that is durable.
pub(super) fn respond(params: &IngestParams, id: EventId, position: Position, duplicate: bool) -> Response {
    if params.json { responses::of_event_as_json(id, position, duplicate) } else { Response::ok() }
}

/// Reads an event, runs the ingest pipeline on it and appends the outcome.
pub(super) async fn ingest<'w>(
    shard: &'w ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    body: &mut Body<'_>,
    permit: &mut Permit<'_>,
) -> Result<Ingested<'w>, Refused> {
    let inline = |bytes: &[u8]| {
        let ingested = ingest_inline(shard, params, envelope, bytes);
        let ingested = ingested.inspect_err(|problem| quarantine::add(shard, envelope, problem, bytes))?;
        Ok::<_, Refused>(ingested.ok_or_else(|| bytes.to_vec()))
    };
    match body.whole(EVENT_BYTES_MAX, permit, inline).await?? {
        Ok(ingested) => Ok(ingested),
        Err(bytes) => Box::pin(ingest_offloaded(shard, params, envelope, bytes, permit)).await,
    }
}

/// Runs the ingest pipeline on an event that Forebay posts, and appends the outcome.
pub(super) async fn ingest_bytes<'w>(
    shard: &'w ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    bytes: &[u8],
    permit: &mut Permit<'_>,
) -> Result<Ingested<'w>, Refused> {
    match ingest_inline(shard, params, envelope, bytes)? {
        Some(ingested) => Ok(ingested),
        None => Box::pin(ingest_offloaded(shard, params, envelope, bytes.to_vec(), permit)).await,
    }
}

/// The outcome of an event.
pub(super) enum Ingested<'w> {
    One(AppendedEvent<'w>),
    /// None or several, by its type's transform.
    Otherwise(TransformedEvent),
}

/// The same on the shard; `None` if it would delay other requests for too long.
fn ingest_inline<'w>(
    shard: &'w ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    bytes: &[u8],
) -> Result<Option<Ingested<'w>>, Refused> {
    let mut types = shard.types();
    params.check_reading(&types)?;
    let is_costly = match params.slot {
        Some(slot) => types.get(slot).is_costly(bytes.len()),
        None => cost::is_costly_by_size(bytes.len()),
    };
    if is_costly {
        if let Some(slot) = params.slot {
            types.get(slot).check()?;
            params.ack.check(types.get(slot))?;
        }
        return Ok(None);
    }
    let (mut workspace, mut windows) = (shard.workspace(), WindowSet::default());
    let pipeline = Pipeline {
        types: &mut types,
        named: params.slot,
        ack: params.ack,
        context: envelope.context(),
        key: RequestKey { id: None, is_digest: false, key: params.key.as_deref(), number: None, keyed: &mut None },
        hash: &shard.shared.content_hash,
        windows: &mut windows,
        epoch: Epoch::Of(&shard.shared.shards),
        room: RequestBudget::remaining(0, 0, shard.records_bytes_max()),
        budget: &mut CostBudget::inline(),
        taps: shard.shared.taps,
    };
    let processed = match pipeline.run(Input::Bytes(bytes), &mut workspace, &mut Unobserved) {
        Err(PipelineError::OverBudget) => {
            workspace.forget();
            return Ok(None);
        }
        processed => processed.map_err(PipelineError::into_problem),
    };
    let content = || shard.shared.content_hash.of(bytes);
    let ingested = processed.and_then(|Processed { slot, made, .. }| match made {
        Made::One(event) => {
            append_event(shard, envelope, &types, slot, event, &mut windows, content).map(Ingested::One)
        }
        Made::Filtered(by) => {
            let refused_commits = windows.refused_commits;
            Ok(Ingested::Otherwise(TransformedEvent::Filtered { by, slot, refused_commits }))
        }
        Made::Several { events, filtered } => {
            let mut builder = shard.new_builder(params, Some(slot), envelope, &types).with_windows(windows);
            builder.fan_out(content(), events, filtered);
            let sent = quarantine::wants(&types, slot).then(|| bytes.into());
            Ok(Ingested::Otherwise(TransformedEvent::Several { builder: Box::new(builder), sent }))
        }
    });
    workspace.forget();
    ingested.map(Some)
}

/// Runs the pipeline on a thread of the worker pool, and appends the outcome on the shard.
async fn ingest_offloaded<'w>(
    shard: &'w ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    bytes: Vec<u8>,
    permit: &mut Permit<'_>,
) -> Result<Ingested<'w>, Refused> {
    permit.admit(bytes.len())?;
    let builder = shard.new_builder(params, params.slot, envelope, &shard.types());
    let work = move || (builder.process_event(&bytes), bytes);
    let (offloaded, bytes) = offload(&shard.pool, permit.client(), work).await?;
    let ingested = offloaded.and_then(|offloaded| append_offloaded(shard, params, envelope, offloaded, &bytes));
    ingested.inspect_err(|problem| quarantine::add(shard, envelope, problem, &bytes))
}

/// Appends the worker pool's result for an event that was sent as these bytes.
fn append_offloaded<'w>(
    shard: &'w ShardContext,
    params: &IngestParams,
    envelope: &Envelope,
    offloaded: Offloaded,
    bytes: &[u8],
) -> Result<Ingested<'w>, Refused> {
    let Offloaded { mut builder, entry, made, content } = offloaded;
    let mut types = shard.types();
    let slot = match params.slot {
        Some(slot) => slot,
        None => types.find_again(entry.name.as_str())?,
    };
    // The configuration may have been reloaded since.
    types.get(slot).check()?;
    types.table().check_rules(&entry)?;
    params.check_reading(&types)?;
    let refused_commits = builder.refused_commits;
    Ok(match made {
        Made::One(event) => {
            let windows = &mut builder.windows;
            Ingested::One(append_event(shard, envelope, &types, slot, event, windows, || content)?)
        }
        Made::Filtered(by) => Ingested::Otherwise(TransformedEvent::Filtered { by, slot, refused_commits }),
        Made::Several { .. } => {
            let sent = quarantine::wants(&types, slot).then(|| bytes.into());
            Ingested::Otherwise(TransformedEvent::Several { builder: Box::new(builder), sent })
        }
    })
}
