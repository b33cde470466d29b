//! What is known of an event without asking any store.

use event::{EventId, Position};

use super::window::Place;
use crate::shard::Shard;

impl Shard {
    /// Where the event of an id that a client gave stands, or the batch of a key, as far as they are remembered: in any
    /// shard. Of a batch it is the first place.
    #[must_use]
    pub fn remembered(&self, id: EventId) -> Option<Position> {
        self.common.memory.window().place_of(id).map(Place::position)
    }

    /// Whether any shard has a durable event at this position, or had.
    #[must_use]
    pub fn has_durable(&self, position: Position) -> bool {
        self.common.memory.has(position)
    }
}
