//! The first copy of what has come again.

use std::sync::Arc;

use event::{EventId, Position};

use super::memory::Memory;
use super::window::{Place, Seen};
use crate::shard::AppendError;

/// An event or a batch that came before, with the same bytes. It may not be durable yet.
pub struct Earlier {
    pub(crate) memory: Arc<Memory>,
    pub(crate) id: EventId,
    pub(crate) content: u64,
    pub(crate) place: Place,
    /// How often ids had been forgotten before it was met.
    pub(super) forgets: u64,
}

impl Earlier {
    /// Where it stands.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.place.position()
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> EventId {
        self.id
    }

    /// Waits until it is durable.
    ///
    /// # Errors
    /// It isn't, and won't be; [`AppendError::Busy`] where it may come a third time now.
    pub async fn durable(self) -> Result<Position, AppendError> {
        let Self { memory, id, content, mut place, forgets } = self;
        let settled = |place| settled(&memory, (id, content), place, forgets);
        loop {
            match settled(place) {
                Now::Durable => return Ok(place.position()),
                Now::Failed => return Err(AppendError::Failed),
                Now::Gone => return Err(AppendError::Busy),
                Now::At(other) => place = other,
            }
            if let Some(shard) = memory.behind(place) {
                let moved = || !matches!(settled(place), Now::At(same) if same == place);
                shard.handover().until(|| moved().then_some(())).await;
            }
        }
    }
}

enum Now {
    Durable,
    /// It isn't durable yet. Where its first place was never written, it may have been appended again elsewhere.
    At(Place),
    /// It was never written, and nobody has appended it again.
    Gone,
    Failed,
}

/// Whether it is durable now.
pub(super) fn is_durable(earlier: &Earlier) -> bool {
    matches!(settled(&earlier.memory, (earlier.id, earlier.content), earlier.place, earlier.forgets), Now::Durable)
}

/// An entry is forgotten before its sequence is given to another event: so where it is still there, the sequence is its own. Whether
/// the place is durable is therefore asked first: it could be another event's by the time the entry was seen. An entry that is gone though
/// none was forgotten since it was met, `forgets` times by then, has made way for newer ones: then the place is its own as well.
fn settled(memory: &Memory, (id, content): (EventId, u64), place: Place, forgets: u64) -> Now {
    let behind = memory.behind(place);
    match memory.window().look_up(id, content) {
        Seen::Same(other) if other != place => Now::At(other),
        Seen::Never | Seen::Other if memory.forgets() != forgets => Now::Gone,
        _ => match behind {
            None => Now::Durable,
            Some(shard) if shard.has_failed() => Now::Failed,
            Some(_) => Now::At(place),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory knows of no shard, so that all places are durable.
    #[test]
    fn what_has_made_way_for_others_is_durable_and_what_was_forgotten_is_not() {
        let memory = Arc::new(Memory::new(1 << 20).unwrap());
        let place = Place::new(0, 7);
        let earlier = |number: u8| {
            let (id, forgets) = (EventId([number; 16]), memory.forgets());
            Earlier { memory: memory.clone(), id, content: 1, place, forgets }
        };
        let (there, gone, forgotten) = (earlier(1), earlier(2), earlier(3));
        memory.window().meet(there.id, 1, place);
        memory.window().meet(forgotten.id, 1, place);
        assert!([&there, &gone, &forgotten].into_iter().all(is_durable));
        memory.forget(&[]);
        assert!(is_durable(&gone), "nothing was forgotten");
        memory.forget(&[(forgotten.id, place)]);
        assert_eq!(
            [&there, &gone, &forgotten].map(is_durable),
            [true, false, false],
            "nobody knows which of the two it was"
        );
    }
}
