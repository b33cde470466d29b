//! Whether requested events are dead letters: then no store has them, and none gets them without a replay.

use std::collections::BTreeSet;

use event::{EventId, Position};
use eventlog::{Rejections, SequenceRange, WatchRequest};

use crate::ack::until_delivered::{self, REFUSED_LISTED_MAX};
use crate::shard::ShardContext;

/// The dead letters of the event with this id, in the request at `position`, or anywhere.
pub(super) async fn of_event(shard: &ShardContext, id: EventId, position: Option<Position>) -> Rejections {
    if !may_be(shard) {
        return Rejections::default();
    }
    let mut asked = WatchRequest::default();
    match position {
        Some(position) => until_delivered::add_copies(shard, vec![(position, Some(id))], &mut asked).await,
        None => asked.spans = shard.shared.shards.iter().map(|log| anywhere(log.number(), id)).collect(),
    }
    refused(shard, asked).await
}

/// The dead letters of the requests at these positions.
pub(super) async fn of_requests(shard: &ShardContext, positions: Vec<Position>) -> Rejections {
    if positions.is_empty() || !may_be(shard) {
        return Rejections::default();
    }
    let mut asked = WatchRequest::default();
    let copies = positions.into_iter().map(|position| (position, None)).collect();
    until_delivered::add_copies(shard, copies, &mut asked).await;
    refused(shard, asked).await
}

fn anywhere(shard: u16, id: EventId) -> SequenceRange {
    SequenceRange { shard, first: 0, last: u64::MAX, only: Some(BTreeSet::from([id])) }
}

fn may_be(shard: &ShardContext) -> bool {
    shard.shared.outcomes.status_source().is_some_and(|witness| witness.may_have_rejected())
}

/// Their reasons are read from the disk.
async fn refused(shard: &ShardContext, asked: WatchRequest) -> Rejections {
    let Some(witness) = shard.shared.outcomes.status_source() else { return Rejections::default() };
    let refused = tokio::task::spawn_blocking(move || witness.rejected(&asked, REFUSED_LISTED_MAX)).await;
    refused.unwrap_or_default()
}
