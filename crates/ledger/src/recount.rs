//! A change of an event's outcome after it was counted.

use event::TypeName;

/// An event whose outcome changes, if it was counted at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount {
    /// The shard that the event came from.
    pub shard: u16,
    /// The event's position in its shard.
    pub sequence: u64,
    /// Its type.
    pub type_name: TypeName,
    /// Whether it is stored now and was dead; if not, the reverse.
    pub is_stored: bool,
    /// Whether it was deferred, and counted as pending.
    pub was_pending: bool,
}
