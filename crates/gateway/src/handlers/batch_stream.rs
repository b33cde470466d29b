//! A batch while its body arrives: body and records are never held together.

use pipeline::batch::{Form, Item, Splitter};

use crate::admission::Permit;
use crate::http1::body::{Body, STRETCH_BYTES};
use crate::ingest::offload;
use crate::ingest::record_builder::RecordBuilder;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// A turn beside the shard is so many times what is much work on it: some milliseconds.
const SHARES_OF_A_TURN: usize = 8;

/// What has come of a batch.
struct BatchStream {
    encoder: RecordBuilder,
    splitter: Splitter,
    /// Bytes since the last record was complete.
    unfinished: usize,
}

/// Encodes records as the body arrives. Chunks that are much work are done beside the shard.
pub(crate) async fn encode(
    worker: &ShardContext,
    (encoder, form): (RecordBuilder, Form),
    body: &mut Body<'_>,
    permit: &mut Permit<'_>,
) -> Result<RecordBuilder, Refused> {
    let sender = permit.sender();
    let mut arriving = BatchStream { encoder, splitter: Splitter::new(form), unfinished: 0 };
    let (mut charged, mut much, mut stretch) = (0, Vec::new(), 0);
    loop {
        let mut take = |chunk: &[u8]| {
            permit.admit(chunk.len())?;
            charged += chunk.len();
            stretch += chunk.len();
            if !much.is_empty() || arriving.is_much_work(chunk.len()) {
                much.extend_from_slice(chunk);
                return Ok(());
            }
            arriving.push(chunk)
        };
        let Some(taken) = body.next(&mut take).await? else { break };
        taken?;
        if !much.is_empty() && !body.has_ended() && !arriving.fills_a_turn(much.len()) {
            continue;
        }
        if !much.is_empty() || arriving.encoder.is_behind() {
            let waiting = arriving.encoder.bytes().saturating_sub(charged);
            permit.admit(waiting)?;
            charged += waiting;
            let chunk = std::mem::take(&mut much);
            let _waiting = body.keep_waiting();
            arriving = offload::run(worker, sender, move || arriving.pushed_beside(&chunk)).await??;
            stretch = 0;
        } else if stretch >= STRETCH_BYTES {
            stretch = 0;
            arriving.encoder.begin_turn();
        }
        // Small records, and what is said of those that are refused, take more room than the body that they came in.
        let beyond = arriving.encoder.bytes().saturating_sub(charged);
        permit.admit(beyond)?;
        charged += beyond;
    }
    if !much.is_empty() {
        arriving = offload::run(worker, sender, move || arriving.pushed_beside(&much)).await??;
    }
    if arriving.is_much_work(0) {
        return offload::run(worker, sender, move || arriving.finished_beside()).await?;
    }
    let mut encoder = arriving.finished()?;
    if encoder.is_behind() {
        encoder = offload::run(worker, sender, move || {
            encoder.catch_up();
            encoder
        })
        .await?;
    }
    encoder.finish();
    Ok(encoder)
}

impl BatchStream {
    fn is_much_work(&self, bytes: usize) -> bool {
        self.encoder.is_much_work(self.unfinished + bytes)
    }

    /// Whether so many bytes are worth a turn beside the shard: to wake its thread takes as long as some ten events.
    fn fills_a_turn(&self, bytes: usize) -> bool {
        bytes >= STRETCH_BYTES || self.is_much_work(bytes / SHARES_OF_A_TURN)
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), Refused> {
        let Self { encoder, splitter, unfinished } = self;
        encoder.came(chunk);
        *unfinished += chunk.len();
        let mut take = |item: Item<'_>| {
            *unfinished = 0;
            encoder.take(item);
        };
        splitter.push(chunk, &mut take).map_err(Problem::of_body)
    }

    /// Takes what was put off and the chunk.
    fn pushed_beside(mut self, chunk: &[u8]) -> Result<Self, Refused> {
        self.encoder.catch_up();
        self.push(chunk)?;
        self.encoder.begin_turn();
        Ok(self)
    }

    /// The body has ended; records may have been put off.
    fn finished(self) -> Result<RecordBuilder, Refused> {
        let Self { mut encoder, splitter, .. } = self;
        splitter.finish(&mut |item| encoder.take(item)).map_err(Problem::of_body)?;
        Ok(encoder)
    }

    fn finished_beside(mut self) -> Result<RecordBuilder, Refused> {
        self.encoder.catch_up();
        let mut encoder = self.finished()?;
        encoder.finish();
        Ok(encoder)
    }
}
