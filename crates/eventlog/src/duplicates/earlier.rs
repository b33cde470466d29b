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
        let Self { memory, id, content, mut place } = self;
        loop {
            match settled(&memory, id, content, place) {
                Now::Durable => return Ok(place.position()),
                Now::Failed => return Err(AppendError::Failed),
                Now::Gone => return Err(AppendError::Busy),
                Now::At(other) => place = other,
            }
            if let Some(shard) = memory.behind(place) {
                let moved = || !matches!(settled(&memory, id, content, place), Now::At(same) if same == place);
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

/// An entry is forgotten before its sequence is given to another event: so where it is still there, the sequence is its own. Whether
/// the place is durable is therefore asked first: it could be another event's by the time the entry was seen.
fn settled(memory: &Memory, id: EventId, content: u64, place: Place) -> Now {
    let behind = memory.behind(place);
    match memory.window().look_up(id, content) {
        Seen::Same(now) if now == place => match behind {
            None => Now::Durable,
            Some(shard) if shard.has_failed() => Now::Failed,
            Some(_) => Now::At(place),
        },
        Seen::Same(other) => Now::At(other),
        Seen::Never | Seen::Other => Now::Gone,
    }
}
