//! Whether events that are asked for are dead letters: then no store has them, and none will get them by itself.

use std::collections::BTreeSet;

use event::{EventId, Position};
use eventlog::{Asked, Refusals, Span};

use crate::ack::delivered::{self, REFUSED_LISTED_MAX};
use crate::shard::ShardContext;

/// The dead letters of the event with this id, which stands in the request at `position`, or anywhere.
pub(super) async fn of_event(worker: &ShardContext, id: EventId, position: Option<Position>) -> Refusals {
    if !may_be(worker) {
        return Refusals::default();
    }
    let mut asked = Asked::default();
    match position {
        Some(position) => delivered::add_copies(worker, vec![(position, Some(id))], &mut asked).await,
        None => asked.spans = worker.shards().iter().map(|shard| anywhere(shard.number(), id)).collect(),
    }
    refused(worker, asked).await
}

/// The dead letters of the requests that stand at these positions.
pub(super) async fn of_requests(worker: &ShardContext, positions: Vec<Position>) -> Refusals {
    if positions.is_empty() || !may_be(worker) {
        return Refusals::default();
    }
    let mut asked = Asked::default();
    let copies = positions.into_iter().map(|position| (position, None)).collect();
    delivered::add_copies(worker, copies, &mut asked).await;
    refused(worker, asked).await
}

fn anywhere(shard: u16, id: EventId) -> Span {
    Span { shard, first: 0, last: u64::MAX, only: Some(BTreeSet::from([id])) }
}

fn may_be(worker: &ShardContext) -> bool {
    worker.outcomes().witness().is_some_and(|witness| witness.may_have_refused())
}

/// Their reasons are read from the disk.
async fn refused(worker: &ShardContext, asked: Asked) -> Refusals {
    let Some(witness) = worker.outcomes().witness() else { return Refusals::default() };
    let refused = tokio::task::spawn_blocking(move || witness.refused(&asked, REFUSED_LISTED_MAX)).await;
    refused.unwrap_or_default()
}
