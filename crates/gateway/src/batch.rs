//! `POST /ingest/batch`: many payloads, whose good ones become durable together.

use event::limits::{BATCH_BYTES_MAX, BLOCK_BYTES_MAX};
use eventlog::{AppendError, AppendOutcome, WatchRequest};

use crate::ack::Ack;
use crate::code::Code;
use crate::encoder::{Encoder, Envelope, Ids};
use crate::event_request::{of_append, other_bytes};
use crate::http1::body::Body;
use crate::http1::response::Response;
use crate::problem::Refused;
use crate::request::Wishes;
use crate::type_cache::{Slot, TypeCache};
use crate::worker::Worker;
use crate::{acknowledgement, answer, arriving, batch_room, stepped, stored};

/// How often a batch is appended that leans on what isn't durable yet: it meets others' blocks once each, unless they lean on it.
const APPENDS_MAX: usize = 16;

/// Takes a batch: the answer is ready when its good records are durable.
pub(crate) async fn take(
    worker: &Worker,
    wishes: &Wishes,
    envelope: Envelope,
    body: &mut Body<'_>,
) -> Result<Response, Refused> {
    if worker.log().is_short_of_space() {
        // Before the body is read: it may have 32 MiB.
        return Err(of_append(worker, AppendError::NoSpace));
    }
    if let Some(slot) = wishes.slot {
        let types = worker.types();
        types.get(slot).check()?;
        wishes.ack.check(types.get(slot))?;
    }
    wishes.check_reading(&worker.types())?;
    body.check_announced(BATCH_BYTES_MAX.min(worker.batch_bytes_max()))?;
    let mut permit = batch_room::permit(worker, worker.sender(&envelope), body.announced()).await?;
    let mut encoder = new_encoder(worker, wishes, wishes.slot, envelope);
    encoder.batch.reuse_buffer(worker.spare_records());
    let mut encoder = arriving::encode(worker, (encoder, wishes.form), body, &mut permit).await?;
    permit.is_whole();
    if wishes.is_web_form {
        explain_one_line(&mut encoder);
    }
    if let Some(problem) = encoder.waits_for_a_store() {
        return Err(problem);
    }
    if wishes.atomic && encoder.refused_count() > 0 {
        encoder.refuse_all();
    }
    encoder.batch.options.atomic = wishes.atomic;
    let ack = wishes.ack.of_types(encoder.types());
    wait_for_filtered(worker, ack, &encoder).await?;
    let asked = store(worker, ack, &mut encoder).await?;
    if wishes.atomic && encoder.refused_count() > 0 {
        encoder.refuse_all();
    }
    count(worker, &encoder);
    // A large batch may have been committed within the turn, whose clock would then say that it took no time.
    worker.clock().refresh();
    Ok(match ack {
        Ack::Disk | Ack::ByType => answer::of_batch(&encoder),
        Ack::Memory => {
            let (verdict, status) = answer::verdict(&encoder);
            answer::json(acknowledgement::not_yet(status), &verdict)
        }
        Ack::Stored => {
            // What is durable isn't in flight any more, however long its client waits: only what is asked and answered is.
            encoder.forget_records();
            permit.shrink(asked.bytes() + encoder.bytes());
            answer_when_stored(worker, &encoder, asked).await
        }
    })
}

/// Lines that `curl -d @FILE` has made one line of are no JSON, and their sender has sent lines.
fn explain_one_line(encoder: &mut Encoder) {
    if let [refusal] = &mut *encoder.refused
        && refusal.code == Code::Json
        && encoder.batch.records().is_empty()
    {
        refusal.add(
            "if these were lines of a file: `curl -d` takes the line breaks out, so send them with --data-binary @FILE and \
             -H 'Content-Type: application/x-ndjson'",
        );
    }
}

/// The answer when the batch is stored, or won't be soon.
async fn answer_when_stored(worker: &Worker, encoder: &Encoder, asked: WatchRequest) -> Response {
    if asked.spans.is_empty() {
        return answer::of_batch(encoder);
    }
    let standing = stored::wait(worker, asked).await;
    let (verdict, status) = answer::verdict(encoder);
    acknowledgement::of_batch(verdict, status, &standing)
}

/// Appends the good records, and waits until they are durable, as the first copies of those that came before are by then; from memory
/// nothing is waited for. Says where they stand to whoever waits until they are stored.
pub(crate) async fn store(worker: &Worker, ack: Ack, encoder: &mut Encoder) -> Result<WatchRequest, Refused> {
    let of_append = |error| of_append(worker, error);
    let mut asked = WatchRequest::default();
    if encoder.batch.records().is_empty() {
        encoder.check_types(worker.types().table())?;
        return Ok(asked);
    }
    worker.log().wait_for_capacity(encoder.batch.records().bytes()).await;
    encoder.batch.options.wait_for_originals = ack != Ack::Memory;
    let taken = append(worker, encoder).await?;
    if let AppendOutcome::Appended(_) = taken {
        encoder.keep_windows();
    }
    let count = encoder.batch.records().len();
    // They stand in the block now, or in that of their first copies: while the disk takes its time none is held twice.
    worker.give_back_records(encoder.batch.take_records());
    let mut copies = Vec::new();
    match taken {
        AppendOutcome::Appended(append) => {
            encoder.position = Some(append.position());
            asked.spans.push(stored::new_span(append.position(), u64::from(count)));
            if ack != Ack::Memory {
                append.await.map_err(of_append)?;
            }
        }
        AppendOutcome::Duplicate(earlier) => {
            if ack != Ack::Memory {
                let position = earlier.durable().await.map_err(of_append)?;
                encoder.position = Some(position);
                copies.push((position, None));
            }
            encoder.all_came_before();
        }
        AppendOutcome::IdConflict => return Err(other_bytes()),
        AppendOutcome::Partial | AppendOutcome::RetryAfter(_) | AppendOutcome::Empty => {}
    }
    let met = encoder.take_met();
    if encoder.batch.options.atomic && encoder.refused_count() > 0 {
        // Nothing was appended: a first copy that stood in the same batch never becomes durable.
        return Ok(asked);
    }
    if ack == Ack::Memory {
        return Ok(asked);
    }
    for earlier in met {
        encoder.position.get_or_insert(earlier.position());
        copies.push((earlier.position(), Some(earlier.id())));
    }
    if ack == Ack::Stored {
        asked.types = encoder.types().map(|known| known.name.clone()).collect();
        stored::add_copies(worker, copies, &mut asked).await;
    }
    Ok(asked)
}

/// Appends a batch when what it leans on is durable. Before that nothing of it is, so that what is refused isn't stored.
async fn append<'w>(worker: &'w Worker, encoder: &mut Encoder) -> Result<AppendOutcome<'w>, Refused> {
    for _ in 0..APPENDS_MAX {
        // No other task runs between this and the append.
        encoder.check_types(worker.types().table())?;
        match worker.log().append(&mut encoder.batch).map_err(|error| of_append(worker, error))? {
            AppendOutcome::Partial => encoder.batch.index_individually(),
            // Where it is lost the batch takes its place.
            AppendOutcome::RetryAfter(earlier) => drop(earlier.durable().await),
            taken => return Ok(taken),
        }
    }
    Err(of_append(worker, AppendError::Busy))
}

/// An encoder for records that are all of the type at `slot`, unless each names its own.
pub(crate) fn new_encoder(worker: &Worker, wishes: &Wishes, slot: Option<Slot>, envelope: Envelope) -> Encoder {
    let types = worker.types();
    let known = slot.map(|slot| types.get(slot).clone());
    let ids = match &wishes.key {
        Some(key) => Ids::Keyed(key.clone()),
        None => Ids::Generated(worker.new_id(envelope.received_at)),
    };
    let mut encoder = Encoder::new(envelope, TypeCache::new(types.table().clone()), known, ids, worker.content_hash());
    encoder.refused_commits = worker.refused_commits();
    encoder.is_named = wishes.is_named;
    encoder.bytes_max = worker.batch_bytes_max().min(BLOCK_BYTES_MAX);
    encoder.with_ack(wishes.ack).with_form(wishes.form)
}

/// Waits until the events are durable that stand for those that steps took out because they came before.
pub(crate) async fn wait_for_filtered(worker: &Worker, ack: Ack, encoder: &Encoder) -> Result<(), Refused> {
    if ack == Ack::Memory || !encoder.leans_on_others() {
        return Ok(());
    }
    stepped::wait_for_others(worker, encoder.refused_commits).await
}

/// Counts what steps took out. Of a batch that came before nothing is taken.
pub(crate) fn count_filtered(worker: &Worker, encoder: &Encoder) {
    if encoder.accepted > 0 {
        encoder.filtered_by().for_each(|(type_name, by, count)| worker.filters().add(type_name, by, count));
    }
}

fn count(worker: &Worker, encoder: &Encoder) {
    count_filtered(worker, encoder);
    let counted = Code::ALL.into_iter().zip(encoder.refused_by_code);
    counted.for_each(|(code, refused)| worker.cells().refused_records(code, refused));
    worker.cells().duplicates.add(encoder.duplicates);
}
