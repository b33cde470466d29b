//! Parses a batch while its body arrives: body and records are never held together.

use json::batch::{Form, Item, Splitter};

use crate::admission::Body;
use crate::admission::Permit;
use crate::ingest::{RecordBuilder, Workspace, offload};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use http1::STRETCH_BYTES;

/// A piece of work for the pool is so many times what is costly on the shard: a few milliseconds.
const COSTLY_IN_A_PIECE: usize = 8;

/// The part of a batch that has arrived.
struct BatchStream {
    builder: RecordBuilder,
    workspace: Workspace,
    splitter: Splitter,
    /// Bytes since the last record was complete.
    unfinished: usize,
}

/// Builds records as the body arrives. Costly chunks are offloaded to the worker pool.
pub(crate) async fn parse(
    shard: &ShardContext,
    builder: RecordBuilder,
    form: Form,
    body: &mut Body<'_>,
    permit: &mut Permit<'_>,
) -> Result<RecordBuilder, Refused> {
    let client = permit.client();
    let mut stream =
        BatchStream { builder, workspace: Workspace::default(), splitter: Splitter::new(form), unfinished: 0 };
    let (mut charged, mut costly, mut stretch) = (0, Vec::new(), 0);
    loop {
        let mut take = |chunk: &[u8]| {
            permit.admit(chunk.len())?;
            charged += chunk.len();
            stretch += chunk.len();
            if !costly.is_empty() || stream.is_costly(chunk.len()) {
                costly.extend_from_slice(chunk);
                return Ok(());
            }
            stream.push(chunk)
        };
        let Some(taken) = body.next(&mut take).await? else { break };
        taken?;
        if !costly.is_empty() && !body.has_ended() && !stream.fills_a_piece(costly.len()) {
            continue;
        }
        if !costly.is_empty() || stream.builder.has_deferred() {
            let waiting = stream.bytes().saturating_sub(charged);
            permit.admit(waiting)?;
            charged += waiting;
            let chunk = std::mem::take(&mut costly);
            let _waiting = body.keep_waiting();
            stream = offload(&shard.pool, client, move || stream.push_offloaded(&chunk)).await??;
            stretch = 0;
        } else if stretch >= STRETCH_BYTES {
            stretch = 0;
            stream.builder.begin_tick();
        }
        // Small records, and the reports about rejected ones, use more memory than the body that they came in.
        let beyond = stream.bytes().saturating_sub(charged);
        permit.admit(beyond)?;
        charged += beyond;
    }
    if !costly.is_empty() {
        stream = offload(&shard.pool, client, move || stream.push_offloaded(&costly)).await??;
    }
    if stream.is_costly(0) {
        return offload(&shard.pool, client, move || stream.finish_offloaded()).await?;
    }
    let mut builder = stream.finished()?;
    if builder.has_deferred() {
        builder = offload(&shard.pool, client, move || {
            builder.process_deferred(&mut Workspace::default());
            builder
        })
        .await?;
    }
    builder.finish();
    Ok(builder)
}

impl BatchStream {
    fn is_costly(&self, bytes: usize) -> bool {
        self.builder.is_costly(self.unfinished + bytes)
    }

    /// About how many bytes are in memory.
    fn bytes(&self) -> usize {
        self.builder.bytes() + self.splitter.kept_bytes()
    }

    /// Whether so many bytes are worth a piece of work for the pool: to wake its thread takes as long as about ten events.
    fn fills_a_piece(&self, bytes: usize) -> bool {
        bytes >= STRETCH_BYTES || self.is_costly(bytes / COSTLY_IN_A_PIECE)
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), Refused> {
        let Self { builder, workspace, splitter, unfinished } = self;
        builder.hash_input(chunk);
        *unfinished += chunk.len();
        let mut take = |item: Item<'_>| {
            *unfinished = 0;
            builder.take(item, workspace);
        };
        splitter.push(chunk, &mut take).map_err(Problem::of_body)
    }

    /// Takes the deferred records and the chunk.
    fn push_offloaded(mut self, chunk: &[u8]) -> Result<Self, Refused> {
        self.builder.process_deferred(&mut self.workspace);
        self.push(chunk)?;
        self.builder.begin_tick();
        Ok(self)
    }

    /// The body has ended; records may have been deferred.
    fn finished(self) -> Result<RecordBuilder, Refused> {
        let Self { mut builder, mut workspace, splitter, .. } = self;
        splitter.finish(&mut |item| builder.take(item, &mut workspace)).map_err(Problem::of_body)?;
        Ok(builder)
    }

    fn finish_offloaded(mut self) -> Result<RecordBuilder, Refused> {
        self.builder.process_deferred(&mut self.workspace);
        let mut builder = self.finished()?;
        builder.finish();
        Ok(builder)
    }
}
