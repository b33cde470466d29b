//! Work that would hold up a shard is done on a thread beside it, one piece at a time for each shard: small events never wait for
//! large ones, and large ones wait for each other.

use std::borrow::Cow;
use std::sync::Arc;

use pipeline::json::JsonErrorKind;
use pipeline::transform::{Outcome, Scratch, Several};
use pipeline::{json, transform};

use crate::admission::Permit;
use crate::code::Code;
use crate::encoder::Envelope;
use crate::event_request::Done;
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::stepped::{self, Stepped};
use crate::type_cache::Slot;
use crate::type_table::Known;
use crate::worker::Worker;

/// Does `work` on a thread beside the shard, when it is its turn.
pub(crate) async fn run<T: Send + 'static>(
    worker: &Worker,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    let turn = worker.beside().clone().acquire_owned().await;
    let work = move || {
        // Held until it is done, though its client may have left.
        let _turn = turn;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::boxed(Code::Overload, "the server is stopping; send the request again later"))
}

/// Takes a single event that is much work.
pub(crate) async fn take<'w>(
    worker: &'w Worker,
    wishes: &Wishes,
    envelope: &Envelope,
    (slot, bytes): (Slot, Vec<u8>),
    permit: &mut Permit<'_>,
) -> Result<Done<'w>, Refused> {
    permit.admit(bytes.len())?;
    let known = worker.types().get(slot).clone();
    let (content, refused_commits) = (worker.content_hash(), worker.refused_commits());
    let (around, key) = (envelope.clone(), wishes.key.as_deref().map(<[u8]>::to_vec).unwrap_or_default());
    let examined = run(worker, move || {
        examine(&bytes, &known, &around, key, refused_commits).map(|done| (done, content.of(&bytes)))
    });
    let (Examined { payload, made, windows }, content) = examined.await??;
    let outcome = match &made {
        Made::Unchanged => Outcome::Unchanged,
        Made::Changed(changed) => Outcome::Changed(changed),
        Made::Filtered(by) => Outcome::Filtered(*by),
        Made::Several(several) => Outcome::Several(several.clone()),
    };
    // The configuration may be another one by now.
    worker.types().get(slot).check()?;
    let stepped = Stepped { slot, windows, refused_commits, is_storable: true };
    stepped::conclude(worker, wishes, envelope, stepped, (outcome, &payload, &|| content))
}

/// A payload that was checked, and what its steps made of it.
struct Examined {
    payload: String,
    made: Made,
    windows: transform::Windows,
}

/// An outcome that holds its own text.
enum Made {
    Unchanged,
    Changed(String),
    Filtered(transform::Filtered),
    Several(Several),
}

fn examine(
    bytes: &[u8],
    known: &Known,
    envelope: &Envelope,
    key: Vec<u8>,
    refused_commits: u64,
) -> Result<Examined, Refused> {
    let mended;
    let payload = match json::check(bytes) {
        Ok(payload) => payload,
        Err(error) => {
            let is_mended = error.kind == JsonErrorKind::Surrogate && known.rules.texts.repair;
            mended = if is_mended { json::mend(bytes) } else { return Err(Problem::of_json(error)) };
            &mended
        }
    };
    known.check_payload(payload)?;
    let Some(steps) = &known.rules.steps else {
        return Ok(Examined {
            payload: known.storable(payload)?.into_owned(),
            made: Made::Unchanged,
            windows: transform::Windows::default(),
        });
    };
    let (mut windows, mut scratch) = (steps.windows(refused_commits), Scratch::default());
    let made = match steps.run(payload, (envelope, known, || key), &mut windows, &mut scratch)? {
        Outcome::Unchanged => match known.storable(payload)? {
            Cow::Borrowed(_) => Made::Unchanged,
            Cow::Owned(repaired) => Made::Changed(repaired),
        },
        Outcome::Changed(changed) => Made::Changed(known.storable(changed)?.into_owned()),
        Outcome::Filtered(by) => Made::Filtered(by),
        Outcome::Several(several) => Made::Several(several),
    };
    Ok(Examined { payload: payload.to_owned(), made, windows })
}

/// Turns at the threads beside a shard.
pub(crate) type Turns = Arc<tokio::sync::Semaphore>;
