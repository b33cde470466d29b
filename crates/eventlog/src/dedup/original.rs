//! The original of a duplicate.

use std::sync::Arc;

use event::{EventId, Position};

use super::entry::PackedPosition;
use super::index::DedupIndex;
use super::window::LookupResult;
use crate::append_error::AppendError;

/// The original of a duplicate: an event or a batch with the same id and the same bytes. It may not be durable yet.
pub struct Original {
    pub(super) index: Arc<DedupIndex>,
    pub(super) id: EventId,
    pub(super) content: u64,
    pub(super) position: PackedPosition,
    /// The index's count of removals before the lookup.
    pub(super) removals: u64,
}

impl Original {
    /// Its position.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position.position()
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> EventId {
        self.id
    }

    /// Waits until it is durable.
    ///
    /// # Errors
    /// It isn't, and won't be; [`AppendError::Busy`] if the event can be appended now.
    pub async fn durable(self) -> Result<Position, AppendError> {
        let Self { index, id, content, mut position, removals } = self;
        let status = |position| status(&index, id, content, position, removals);
        loop {
            match status(position) {
                Status::Durable => return Ok(position.position()),
                Status::Failed => return Err(AppendError::Failed),
                Status::Gone => return Err(AppendError::Busy),
                Status::At(other) => position = other,
            }
            if let Some(log) = index.undurable_log(position) {
                let has_moved = || !matches!(status(position), Status::At(same) if same == position);
                log.tail_cache().until(|| has_moved().then_some(())).await;
            }
        }
    }
}

enum Status {
    Durable,
    /// It isn't durable yet. If its first position was never written, another request may have appended it at this one.
    At(PackedPosition),
    /// It was never written, and no other request has appended it.
    Gone,
    Failed,
}

/// Whether it is durable now.
pub(super) fn is_durable(original: &Original) -> bool {
    let Original { index, id, content, position, removals } = original;
    matches!(status(index, *id, *content, *position, *removals), Status::Durable)
}

/// An entry is removed before another event gets its sequence: while the entry exists, the position is its own. So the
/// durability of the position is read first: by the time of the lookup it could be another event's. If the entry is
/// gone but none was removed since the original was found, newer entries have replaced it: then the position is its own
/// too.
fn status(index: &DedupIndex, id: EventId, content: u64, position: PackedPosition, removals: u64) -> Status {
    let behind = index.undurable_log(position);
    match index.window().look_up(id, content) {
        LookupResult::Duplicate(other) if other != position => Status::At(other),
        LookupResult::New | LookupResult::OtherBytes if index.removals() != removals => Status::Gone,
        _ => match behind {
            None => Status::Durable,
            Some(log) if log.has_failed() => Status::Failed,
            Some(_) => Status::At(position),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index has no shard, so all positions are durable.
    #[test]
    fn replaced_entry_is_durable_but_removed_is_not() {
        let index = Arc::new(DedupIndex::new(1 << 20).unwrap());
        let position = PackedPosition::new(0, 7);
        let original = |number: u8| {
            let (id, removals) = (EventId([number; 16]), index.removals());
            Original { index: index.clone(), id, content: 1, position, removals }
        };
        let (there, gone, forgotten) = (original(1), original(2), original(3));
        index.window().insert(there.id, 1, position);
        index.window().insert(forgotten.id, 1, position);
        assert!([&there, &gone, &forgotten].into_iter().all(is_durable));
        index.remove(&[]);
        assert!(is_durable(&gone), "nothing was removed");
        index.remove(&[(forgotten.id, position)]);
        assert_eq!(
            [&there, &gone, &forgotten].map(is_durable),
            [true, false, false],
            "it may have been replaced or removed"
        );
    }
}
