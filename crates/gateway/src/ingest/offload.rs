//! CostBudget that would hold up a shard is done on a thread beside it, one piece at a time for each shard: small events never wait for
//! large ones, and large ones wait for each other.

use std::borrow::Cow;

use pipeline::transform::{Outcome, Scratch, Several};
use pipeline::{Values, transform};

use crate::admission::Permit;
use crate::admission::client_quota::ClientBucket;
use crate::error_code::ErrorCode;
use crate::handlers::event::{Ingested, checked};
use crate::handlers::transform_outcome::{self, Stepped};
use crate::ingest::params::IngestParams;
use crate::ingest::record_builder::{Envelope, type_of};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use crate::types::cost::{CostBudget, OverBudget};
use crate::types::type_cache::{Slot, TypeCache};
use crate::types::type_registry::TypeEntry;

/// What a thread beside a shard gives way by, in steps of `nice`: where cores are short, shards have them first, and a tenth is left.
const NICE: i32 = 10;

/// To be called on each thread beside a shard when it begins. Where it isn't allowed, all are alike.
pub(crate) fn give_way() {
    // Without a process it is the calling thread alone (sched(7)).
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Does the `work` of `sender` on a thread beside the shard, when it is its turn.
pub(crate) async fn run<T: Send + 'static>(
    worker: &ShardContext,
    sender: ClientBucket,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    let turn = worker.beside().turn(sender).await;
    let work = move || {
        // ReadBuffer until it is done, though its client may have left.
        let _turn = turn;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::boxed(ErrorCode::Overload, "the server is stopping; send the request again later"))
}

/// Takes a single event that is much work.
pub(crate) async fn take<'w>(
    worker: &'w ShardContext,
    wishes: &IngestParams,
    envelope: &Envelope,
    (slot, bytes): (Option<Slot>, Vec<u8>),
    permit: &mut Permit<'_>,
) -> Result<Ingested<'w>, Refused> {
    permit.admit(bytes.len())?;
    let sender = permit.sender();
    let (slot, bytes) = match slot {
        Some(slot) => (slot, bytes),
        None => find_type(worker, wishes, sender, bytes).await?,
    };
    let known = worker.types().get(slot).clone();
    let used = known.clone();
    let (content, refused_commits) = (worker.content_hash(), worker.refused_commits());
    let (around, key) = (envelope.clone(), wishes.key.as_deref().map(<[u8]>::to_vec).unwrap_or_default());
    let examined = run(worker, sender, move || {
        examine(&bytes, &known, &around, key, refused_commits).map(|done| (done, content.of(&bytes)))
    });
    let (Examined { payload, made, windows }, content) = examined.await??;
    // The configuration may be another one by now.
    check(worker, wishes, (slot, &used))?;
    let stepped = Stepped { slot, windows, refused_commits, is_storable: true };
    let made = match made {
        Made::One(made) => made,
        Made::Several(several) => {
            let mut encoder = transform_outcome::encoder_of_several(worker, wishes, envelope, stepped);
            let encoder =
                run(worker, sender, move || encoder.take_several(content, &several).map(|()| encoder)).await??;
            // Once more, for that took its time.
            check(worker, wishes, (slot, &used))?;
            return Ok(transform_outcome::of_several(worker, wishes, envelope, slot, (encoder, content)));
        }
    };
    let outcome = match &made {
        One::Unchanged => Outcome::Unchanged,
        One::Changed(changed) => Outcome::Changed(changed),
        One::Filtered(by) => Outcome::Filtered(*by),
    };
    transform_outcome::conclude(worker, wishes, envelope, stepped, (outcome, &payload, &|| content))
}

/// The type that a payload names, or that it has by a rule, however much work that is.
pub(crate) fn type_told_by(types: &mut TypeCache, payload: &str) -> Result<Slot, Refused> {
    match type_of(types, payload, &mut CostBudget::beside()) {
        Ok(slot) => Ok(slot?),
        Err(OverBudget) => {
            Err(Problem::boxed(ErrorCode::Overload, "the type wasn't found in time; send the event again later"))
        }
    }
}

/// Finds the type of an event whose payload names it, where that is much work, or may be; and gives the payload back.
async fn find_type(
    worker: &ShardContext,
    wishes: &IngestParams,
    sender: ClientBucket,
    bytes: Vec<u8>,
) -> Result<(Slot, Vec<u8>), Refused> {
    let (mut types, ack) = (TypeCache::new(worker.types().table().clone()), wishes.ack);
    let found = run(worker, sender, move || -> Result<_, Refused> {
        let (payload, fault) = checked(&bytes, types.table())?;
        let slot = type_told_by(&mut types, &payload)?;
        let known = types.get(slot);
        known.check()?;
        known.check_mended(fault)?;
        ack.check(known)?;
        let name = known.name.clone();
        drop(payload);
        Ok((name, bytes))
    });
    let (name, bytes) = found.await??;
    let slot = worker.types().find_again(name.as_str())?;
    Ok((slot, bytes))
}

/// Whether what was made by these rules may be taken.
fn check(worker: &ShardContext, wishes: &IngestParams, (slot, used): (Slot, &TypeEntry)) -> Result<(), Refused> {
    let types = worker.types();
    types.get(slot).check()?;
    used.check_rules(types.table())?;
    Ok(wishes.check_reading(&types)?)
}

/// A payload that was checked, and what its steps made of it.
struct Examined {
    payload: String,
    made: Made,
    windows: transform::Windows,
}

/// What the steps made of a payload.
enum Made {
    One(One),
    Several(Several),
}

/// An outcome that holds its own text.
enum One {
    Unchanged,
    Changed(String),
    Filtered(transform::Filtered),
}

fn examine(
    bytes: &[u8],
    known: &TypeEntry,
    envelope: &Envelope,
    key: Vec<u8>,
    refused_commits: u64,
) -> Result<Examined, Refused> {
    let payload = known.rules.texts.payload(bytes)?;
    let payload = &*payload;
    let mut values = Values::default();
    let Ok(checked) = known.check_payload(payload, &mut values, &mut CostBudget::beside()) else {
        return Err(Problem::boxed(ErrorCode::Overload, "the event wasn't checked in time; send it again later"));
    };
    let read = checked?;
    let Some(steps) = &known.rules.steps else {
        return Ok(Examined {
            payload: known.storable(payload)?.into_owned(),
            made: Made::One(One::Unchanged),
            windows: transform::Windows::default(),
        });
    };
    let (mut windows, mut scratch) = (steps.windows(refused_commits), Scratch::default());
    let made = match steps.run(read, (envelope, known, || key), &mut windows, &mut scratch)? {
        Outcome::Unchanged => Made::One(match known.storable(payload)? {
            Cow::Borrowed(_) => One::Unchanged,
            Cow::Owned(repaired) => One::Changed(repaired),
        }),
        Outcome::Changed(changed) => Made::One(One::Changed(known.storable(changed)?.into_owned())),
        Outcome::Filtered(by) => Made::One(One::Filtered(by)),
        Outcome::Several(several) => Made::Several(several),
    };
    Ok(Examined { payload: payload.to_owned(), made, windows })
}
