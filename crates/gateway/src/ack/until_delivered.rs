//! With `Forebay-Ack: stored`: waits until every route has the events, or until the timeout.

use std::collections::BTreeSet;
use std::sync::Arc;

use event::{EventId, Position, TypeName};
use eventlog::{RejectedEvent, Rejections, SequenceRange, WatchRequest};

use crate::shard::ShardContext;

/// Dead letters of each sink that a response lists; the others are counted.
pub(crate) const REFUSED_LISTED_MAX: usize = 100;

/// How far the delivery of the events of a request has come.
#[derive(Debug)]
pub(crate) enum DeliveryStatus {
    /// Every route has them.
    Stored,
    /// Some of these sinks may not have all of them yet. None is named if it isn't known, because delivery has ended.
    Pending(Vec<Arc<str>>),
    /// A sink has rejected some permanently.
    Refused(Dead),
}

/// Events that were rejected permanently.
#[derive(Debug)]
pub(crate) struct Dead {
    pub(crate) listed: Vec<RejectedEvent>,
    /// How many there are.
    pub(crate) count: u64,
    /// Sinks that may not have all of the others.
    pub(crate) pending: Vec<Arc<str>>,
}

/// The request to watch events that were just appended.
pub(crate) fn new_span(first: Position, count: u64) -> SequenceRange {
    let last = first.sequence + count.saturating_sub(1);
    SequenceRange { shard: first.shard, first: first.sequence, last, only: None }
}

/// Up to so many originals are sorted on the shard, in about a tenth of a millisecond; more on another thread.
const SORTED_INLINE: usize = 1_000;

/// Adds the originals of duplicates: the events with these ids, at these positions or later in the same request. Without ids it adds the
/// whole request.
pub(crate) async fn add_copies(
    shard: &ShardContext,
    copies: Vec<(Position, Option<EventId>)>,
    asked: &mut WatchRequest,
) {
    let spans = if copies.len() <= SORTED_INLINE {
        spans_of(&copies)
    } else {
        // It ends early only with the server, and then no request waits.
        tokio::task::spawn_blocking(move || spans_of(&copies)).await.unwrap_or_default()
    };
    for mut span in spans {
        extend(shard, &mut span, &mut asked.types).await;
        asked.spans.push(span);
    }
}

fn spans_of(copies: &[(Position, Option<EventId>)]) -> Vec<SequenceRange> {
    let mut spans: Vec<SequenceRange> = Vec::new();
    for &(Position { shard, sequence }, id) in copies {
        let only = || id.map(|_| BTreeSet::new());
        let at = spans.iter().position(|span| span.shard == shard).unwrap_or_else(|| {
            spans.push(SequenceRange { shard, first: sequence, last: sequence, only: only() });
            spans.len() - 1
        });
        let span = &mut spans[at];
        (span.first, span.last) = (span.first.min(sequence), span.last.max(sequence));
        span.only.iter_mut().for_each(|only| only.extend(id));
    }
    spans
}

/// The end of the last request isn't remembered with its ids, but the log has it. If it can't be read there, the lanes report that too.
async fn extend(shard: &ShardContext, span: &mut SequenceRange, types: &mut Vec<TypeName>) {
    let Some(shard) = shard.shared.shards.get(usize::from(span.shard)).cloned() else { return };
    let sequence = span.last;
    let extent = tokio::task::spawn_blocking(move || shard.request_range(sequence)).await;
    let Ok(Ok(Some(extent))) = extent else { return };
    span.last = extent.last;
    for name in extent.types {
        if !types.contains(&name) {
            types.push(name);
        }
    }
}

/// Waits for at most as long as is configured, or until the server stops.
pub(crate) async fn wait(shard: &ShardContext, asked: WatchRequest) -> DeliveryStatus {
    let (longest, outcomes) = (shard.rules().ack_timeout, shard.shared.outcomes.clone());
    shard.timer.wait(longest, outcomes.wait(&asked)).await;

    let Some(witness) = outcomes.status_source() else { return DeliveryStatus::Pending(Vec::new()) };
    let pending: BTreeSet<Arc<str>> = witness.pending(&asked).into_iter().map(|lane| lane.sink).collect();
    if !witness.may_have_rejected() {
        return status(pending, Rejections::default());
    }
    // It may read the disk.
    let refused = tokio::task::spawn_blocking(move || witness.rejected(&asked, REFUSED_LISTED_MAX)).await;
    refused.map_or_else(|_| DeliveryStatus::Pending(Vec::new()), |refusals| status(pending, refusals))
}

fn status(mut pending: BTreeSet<Arc<str>>, refusals: Rejections) -> DeliveryStatus {
    pending.extend(refusals.unknown);
    let pending: Vec<_> = pending.into_iter().collect();
    match (refusals.count, pending.is_empty()) {
        (0, true) => DeliveryStatus::Stored,
        (0, false) => DeliveryStatus::Pending(pending),
        (count, _) => DeliveryStatus::Refused(Dead { listed: refusals.listed, count, pending }),
    }
}
