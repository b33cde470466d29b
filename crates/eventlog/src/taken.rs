//! What becomes of an append where ids may have come before.

use crate::duplicates::{Earlier, Met};
use crate::shard::Append;

/// What became of events that may have come before.
pub enum Taken<'a> {
    /// They are appended.
    New(Append<'a>),
    /// They came before, with the same bytes.
    Again(Earlier),
    /// Their id came before, with other bytes.
    OtherBytes,
    /// Nothing of a batch with a key is appended, because some of it isn't taken: [`Batch::know_each`](crate::Batch::know_each), and
    /// append it again.
    InPart,
    /// Nothing of a batch is appended, because it leans on this, of which nobody knows yet whether it becomes durable: wait for that, whatever
    /// comes of it, and append the batch again.
    Later(Earlier),
    /// Nothing of a batch is appended, because each event came before, or because it is atomic: see what the batch says.
    Nothing,
}

impl From<Met> for Taken<'_> {
    fn from(met: Met) -> Self {
        match met {
            Met::Again(earlier) => Self::Again(earlier),
            Met::OtherBytes => Self::OtherBytes,
            Met::InPart => Self::InPart,
            Met::Unsettled(earlier) => Self::Later(earlier),
            Met::Nothing => Self::Nothing,
        }
    }
}

impl<'a> Taken<'a> {
    /// The append, where there was one.
    #[must_use]
    pub fn appended(self) -> Option<Append<'a>> {
        match self {
            Self::New(append) => Some(append),
            Self::Again(_) | Self::OtherBytes | Self::InPart | Self::Later(_) | Self::Nothing => None,
        }
    }
}
