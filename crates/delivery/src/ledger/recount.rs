//! A change of an event's outcome after it was counted.

use event::TypeName;

/// An event that is to be counted otherwise, if it was counted at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recount {
    pub(crate) shard: u16,
    pub(crate) sequence: u64,
    pub(crate) type_name: TypeName,
    /// Whether it is stored now and was dead; else the other way round.
    pub(crate) is_stored: bool,
    /// Whether it was set aside, and counted as pending.
    pub(crate) was_pending: bool,
}
