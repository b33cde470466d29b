//! Decodes the body of an intake's request, on the shard or on a thread of its worker pool, in pieces for which memory is reserved.

use intake::{IntakeCall, IntakeRecord, Records, Stop};
use ring::digest::{Context, SHA256};

use super::problem;
use crate::admission::{ClientBucket, Permit};
use crate::error_code::ErrorCode;
use crate::event_types::is_costly_by_size;
use crate::ingest::{RecordBuilder, Workspace, offload};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// Records of so many bytes are decoded before their memory is counted, at least.
const ROOM_MIN: usize = 64 * 1024;

/// The body of a request, and the records that were decoded so far.
pub(super) struct Decoding {
    pub(super) call: Box<dyn IntakeCall>,
    pub(super) body: Vec<u8>,
    pub(super) builder: RecordBuilder,
    pub(super) digest: Option<BodyDigest>,
    /// Why the protocol rejects the request as a whole.
    pub(super) rejection: Option<intake::Problem>,
}

/// What the digest of a body covers in addition to the body: the same bytes at another path may be other events.
#[derive(Clone)]
pub(super) struct BodyDigest {
    context: Context,
}

impl BodyDigest {
    pub(super) fn new(intake: &str, target: &str, scope: &str) -> Self {
        let mut context = Context::new(&SHA256);
        for part in [intake, target, scope] {
            // No part has a NUL.
            context.update(part.as_bytes());
            context.update(b"\0");
        }
        Self { context }
    }

    fn of(&self, body: &[u8]) -> [u8; 32] {
        let mut context = self.context.clone();
        context.update(body);
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }
}

impl Decoding {
    /// Decodes all records of the decoding in `slot`, which has it back afterwards, also after an error; unless the server stops.
    ///
    /// # Errors
    /// The request as a whole is rejected, or there is no memory for its records.
    pub(super) async fn run(
        slot: &mut Option<Self>,
        shard: &ShardContext,
        permit: &mut Permit<'_>,
    ) -> Result<(), Refused> {
        let (mut charged, mut room, mut is_offloaded) = (0, ROOM_MIN, false);
        let mut scratch = shard.further_permit(permit.client())?;
        loop {
            let Some(mut decoding) = slot.take() else { return Err(stopping()) };
            let needed = decoding.call.needed_bytes(&decoding.body);
            let bytes = decoding.body.len().saturating_add(needed);
            room = room.max(bytes);
            is_offloaded |= is_costly_by_size(bytes) || decoding.builder.is_costly(bytes);
            let alone = shard.shared.admission.check_alone(bytes.saturating_add(charged));
            if let Err(refused) = alone.and_then(|()| scratch.admit(needed)) {
                *slot = Some(decoding);
                return Err(refused);
            }
            let outcome = if is_offloaded {
                let (back, outcome) = offload(&shard.pool, permit.client(), move || {
                    let outcome = decoding.decode_offloaded(room);
                    (decoding, outcome)
                })
                .await?;
                decoding = back;
                outcome
            } else {
                decoding.decode(room)
            };
            let kept = decoding.builder.bytes() + decoding.call.kept_bytes();
            let in_body = decoding.body.len();
            *slot = Some(decoding);
            scratch.shrink(0);
            shard.shared.admission.check_alone(in_body.saturating_add(kept))?;
            permit.admit(kept.saturating_sub(charged))?;
            charged = charged.max(kept);
            match outcome {
                Ok(()) => return Self::finish(slot, shard, permit.client()).await,
                Err(Stop::Rejected(rejection)) => {
                    if let Some(decoding) = slot {
                        decoding.rejection = Some(rejection.clone());
                    }
                    return Err(problem::of_protocol(rejection));
                }
                // It begins from the start, so the rooms grow: the work is at most twice that of one pass.
                Err(Stop::Paused) => (room, is_offloaded) = (room.saturating_mul(2), true),
            }
        }
    }

    /// Processes the records that cost too much for the shard, and ends the batch.
    async fn finish(slot: &mut Option<Self>, shard: &ShardContext, client: ClientBucket) -> Result<(), Refused> {
        let Some(mut decoding) = slot.take() else { return Err(stopping()) };
        if decoding.builder.has_deferred() {
            let work = move || {
                decoding.builder.process_deferred(&mut Workspace::default());
                decoding
            };
            decoding = offload(&shard.pool, client, work).await?;
        }
        decoding.builder.finish();
        *slot = Some(decoding);
        Ok(())
    }

    fn decode(&mut self, room: usize) -> Result<(), Stop> {
        let Self { call, body, builder, digest, .. } = self;
        let digest = digest.as_ref().filter(|_| call.is_repeatable(body));
        let (mut workspace, skip) = (Workspace::default(), builder.taken());
        let mut take = |record: IntakeRecord<'_>| {
            let has_id = record.id.is_some_and(|id| !id.is_empty());
            if let (false, Some(digest), true) = (has_id, digest, builder.lacks_key()) {
                builder.set_digest(&digest.of(body));
            }
            builder.take_record(&record, &mut workspace);
        };
        call.decode(body, &mut Records::new(skip, room, &mut take))
    }

    fn decode_offloaded(&mut self, room: usize) -> Result<(), Stop> {
        self.builder.process_deferred(&mut Workspace::default());
        self.decode(room)
    }
}

/// The decoding was lost with its thread.
pub(super) fn stopping() -> Refused {
    Problem::boxed(ErrorCode::Overload, "the server is stopping; retry later")
}
