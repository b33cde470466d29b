//! A single event whose type has steps: it goes on, is taken out, or becomes several.

use std::borrow::Cow;

use eventlog::{AppendError, AppendOutcome, DedupKey, Record};
use pipeline::View;
use pipeline::transform::{Filtered, Outcome, Several, Windows};

use crate::ack::Ack;
use crate::acknowledgement::{self, SingleEvent};
use crate::admission::Permit;
use crate::effort::Work;
use crate::encoder::{Encoder, Envelope};
use crate::event_request::{Appended, Came, Done, given_id, key_id, of_append, other_bytes};
use crate::http1::response::Response;
use crate::problem::Refused;
use crate::request::Wishes;
use crate::type_cache::Slot;
use crate::type_steps::{Ran, TypeSteps};
use crate::worker::Worker;
use crate::{answer, batch, stored};

/// An event of which there is another number of records than one.
pub(crate) enum Otherwise {
    /// A step took it out.
    Filtered {
        by: Filtered,
        slot: Slot,
        /// As it was before the steps.
        refused_commits: u64,
    },
    /// It became several.
    Several(Box<Encoder>),
}

/// What is known of an event that was taken through its type's steps.
pub(crate) struct Stepped {
    pub(crate) slot: Slot,
    /// What they remember of it.
    pub(crate) windows: Windows,
    /// Commits that had been refused before.
    pub(crate) refused_commits: u64,
    /// What became of it is known to be what stores can take.
    pub(crate) is_storable: bool,
}

/// Takes an event, which came as `bytes`, through its type's steps, and appends what becomes of it; unless that is more work than there
/// may be.
pub(crate) fn append<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    slot: Slot,
    (steps, payload, bytes): (&TypeSteps, View<'_>, &[u8]),
    work: &mut Work,
) -> Result<Came<'w>, Refused> {
    let refused_commits = worker.refused_commits();
    let mut windows = steps.windows(refused_commits);
    let mut buffers = worker.step_buffers();
    let outcome = {
        let types = worker.types();
        let key = || wishes.key.as_deref().map(<[u8]>::to_vec).unwrap_or_default();
        steps.run_within(work, payload, (envelope, types.get(slot), key), &mut windows, &mut buffers)?
    };
    let Ran::Done(outcome) = outcome else { return Ok(Came::Much(Some(slot), bytes.to_vec())) };
    let stepped = Stepped { slot, windows, refused_commits, is_storable: false };
    conclude(worker, wishes, envelope, stepped, (outcome, payload.payload(), &|| worker.content_hash().of(bytes)))
        .map(Came::Done)
}

/// Appends what has become of a payload. `content` is the hash of the bytes that came.
pub(crate) fn conclude<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    mut stepped: Stepped,
    (outcome, payload, content): (Outcome<'_>, &str, &dyn Fn() -> u64),
) -> Result<Done<'w>, Refused> {
    let Stepped { slot, refused_commits, .. } = stepped;
    let payload = match outcome {
        Outcome::Unchanged => payload,
        Outcome::Changed(changed) => changed,
        Outcome::Filtered(by) => {
            return Ok(Done::Otherwise(Otherwise::Filtered { by, slot, refused_commits }));
        }
        Outcome::Several(several) => return become_several(worker, wishes, envelope, stepped, (&several, content())),
    };
    let types = worker.types();
    let known = types.get(slot);
    let payload = if stepped.is_storable { Cow::Borrowed(payload) } else { known.storable(payload)? };
    let given = given_id(wishes, envelope, known, &payload)?;
    let time = known.time_of(&payload)?;
    let id = given.unwrap_or_else(|| worker.new_id(envelope.received_at));
    let record = Record { content: given.map(|_| content()), ..envelope.record(known, (id, time), &payload) };
    let taken = worker.log().append_one(&record, known.id).map_err(|error| of_append(worker, error))?;
    if let AppendOutcome::Appended(_) = taken {
        stepped.windows.keep();
    }
    Ok(Done::One(Appended { taken, id, slot }))
}

fn become_several<'w>(
    worker: &Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    stepped: Stepped,
    (several, content): (&Several, u64),
) -> Result<Done<'w>, Refused> {
    let slot = stepped.slot;
    let mut encoder = encoder_of_several(worker, wishes, envelope, stepped);
    encoder.take_several(content, several)?;
    Ok(of_several(worker, wishes, envelope, slot, (encoder, content)))
}

/// What takes the events that one has become.
pub(crate) fn encoder_of_several(worker: &Worker, wishes: &Wishes, envelope: &Envelope, stepped: Stepped) -> Encoder {
    let Stepped { slot, windows, refused_commits, .. } = stepped;
    let mut encoder = batch::new_encoder(worker, wishes, Some(slot), envelope.clone()).with_windows(windows);
    encoder.refused_commits = refused_commits;
    encoder
}

/// An event that has become several, which are taken. `content` is the hash of the bytes that came.
pub(crate) fn of_several<'w>(
    worker: &Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    slot: Slot,
    (mut encoder, content): (Encoder, u64),
) -> Done<'w> {
    let have_ids = encoder.batch.have_own_ids();
    if let (Some(id), false) = (key_id(wishes, envelope, worker.types().get(slot)), have_ids) {
        encoder.batch.set_key(DedupKey { id, content });
    }
    encoder.batch.options.is_partial = encoder.leans_on_others();
    // What it has become is one event to its client.
    encoder.batch.options.atomic = true;
    Done::Otherwise(Otherwise::Several(Box::new(encoder)))
}

impl Otherwise {
    /// The answer, when what was wished for is true.
    pub(crate) async fn answer(
        self,
        worker: &Worker,
        wishes: &Wishes,
        permit: Permit<'_>,
    ) -> Result<Response, Refused> {
        match self {
            Self::Filtered { by, slot, refused_commits } => {
                if by.came_before() {
                    wait_for_others(worker, refused_commits).await?;
                }
                worker.filters().add(&worker.types().get(slot).name, by, 1);
                Ok(if wishes.json { answer::of_filtered_as_json(by) } else { Response::ok() })
            }
            Self::Several(encoder) => answer_several(worker, wishes, permit, *encoder).await,
        }
    }
}

async fn answer_several(
    worker: &Worker,
    wishes: &Wishes,
    mut permit: Permit<'_>,
    mut encoder: Encoder,
) -> Result<Response, Refused> {
    permit.admit(encoder.bytes())?;
    let events = encoder.batch.records().len();
    let ack = wishes.ack.of_types(encoder.types());
    let Some(id) = encoder.first_id else {
        // None of them has gone on.
        batch::wait_for_filtered(worker, ack, &encoder).await?;
        batch::count_filtered(worker, &encoder);
        let by = encoder.filtered_by().next().map(|(_, by, _)| by).filter(|_| wishes.json);
        return Ok(by.map_or_else(Response::ok, answer::of_filtered_as_json));
    };
    batch::wait_for_filtered(worker, ack, &encoder).await?;
    let asked = batch::store(worker, ack, &mut encoder).await?;
    if encoder.refused_count() > 0 {
        return Err(other_bytes());
    }
    batch::count_filtered(worker, &encoder);
    let duplicate = encoder.duplicates > 0;
    worker.cells().duplicates.add(encoder.duplicates);
    let Some(position) = encoder.position.filter(|_| ack != Ack::Memory) else {
        return Ok(acknowledgement::of_event_in_memory(id, duplicate));
    };
    if ack == Ack::Stored {
        encoder.forget_records();
        drop(permit);
        let standing = stored::wait(worker, asked).await;
        return Ok(acknowledgement::of_event(&SingleEvent { id, position, duplicate }, &standing, wishes.json));
    }
    Ok(if wishes.json { answer::of_several_as_json(id, position, duplicate, events) } else { Response::ok() })
}

/// Waits until the events that stand for one that was taken out are durable. Which they are isn't known, but they were appended,
/// so that it is enough if all is durable that was.
pub(crate) async fn wait_for_others(worker: &Worker, refused_commits: u64) -> Result<(), Refused> {
    for shard in worker.shards() {
        shard.flush().await;
        if shard.has_failed() {
            return Err(of_append(worker, AppendError::Failed));
        }
    }
    if worker.refused_commits() == refused_commits {
        return Ok(());
    }
    Err(of_append(worker, AppendError::NoSpace))
}
