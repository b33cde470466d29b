//! An entry of the dedup index.

use std::num::NonZeroU64;

use event::{EventId, Position};

/// The position of an entry's event, in one word, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedPosition(NonZeroU64);

const SEQUENCE_BITS: u32 = 48;

impl PackedPosition {
    /// # Panics
    /// There is no such sequence: they begin at 1 and have 48 bits, which a million events a second take nine years to
    /// use up.
    pub(crate) const fn new(shard: u16, sequence: u64) -> Self {
        assert!(sequence > 0 && sequence >> SEQUENCE_BITS == 0, "a sequence has 48 bits and isn't 0");
        Self(NonZeroU64::new(((shard as u64) << SEQUENCE_BITS) | sequence).expect("its sequence isn't 0"))
    }

    pub(crate) const fn position(self) -> Position {
        let [.., high, low] = (self.0.get() >> SEQUENCE_BITS).to_be_bytes();
        Position { shard: u16::from_be_bytes([high, low]), sequence: self.0.get() & ((1 << SEQUENCE_BITS) - 1) }
    }
}

/// The index entry of an event or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: EventId,
    pub(super) content: u64,
    pub(super) position: PackedPosition,
    /// Seconds on the window's clock.
    pub(super) at: i32,
}
