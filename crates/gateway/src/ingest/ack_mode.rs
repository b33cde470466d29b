//! The acknowledgement that a client asks for.

use crate::error_code::ErrorCode;
use crate::event_types::{Slot, TypeCache, TypeEntry};
use crate::problem::{Problem, Refused};

/// The values of `Forebay-Ack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AckMode {
    /// They are durable.
    #[default]
    Disk,
    /// They are in memory, and lost with the process.
    Memory,
    /// Every route of their type has them.
    Stored,
    /// The default of their type, which isn't known before the payload names the type.
    ByType,
}

impl AckMode {
    /// What a header asks for; without one, the default of the type.
    ///
    /// # Errors
    /// The value isn't one of them.
    pub(crate) fn of_header(value: Option<&[u8]>) -> Result<Self, Refused> {
        let Some(value) = value else { return Ok(Self::ByType) };
        let known = [("disk", Self::Disk), ("memory", Self::Memory), ("stored", Self::Stored)];
        let found = known.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name.as_bytes()));
        found
            .map(|(_, ack)| ack)
            .ok_or_else(|| Problem::of_header("invalid Forebay-Ack: use `disk`, `memory` or `stored`"))
    }

    /// The same for events of these types: without a header the strictest of their defaults holds.
    pub(crate) fn of_types<'k>(self, mut types: impl Iterator<Item = &'k TypeEntry>) -> Self {
        match self {
            Self::ByType if types.any(|known| known.rules.ack_stored) => Self::Stored,
            Self::ByType => Self::Disk,
            asked => asked,
        }
    }

    /// The same for a request of which the head names the type at `slot`, or none.
    pub(crate) fn of_head(self, types: &TypeCache, slot: Option<Slot>) -> Self {
        match slot {
            None if types.table().acks_stored => self,
            slot => self.of_types(slot.into_iter().map(|slot| types.get(slot))),
        }
    }

    /// Whether events of this type may be answered so.
    ///
    /// # Errors
    /// The configuration of the type forbids it.
    pub(crate) fn check(self, known: &TypeEntry) -> Result<(), Problem> {
        if self != Self::Memory || known.rules.ack_memory {
            return Ok(());
        }
        let name = &known.name;
        let detail = format!(
            "events of type {name} are not acknowledged before they are durable: omit Forebay-Ack, or set ack_memory = \
             true in [types.{name}]"
        );
        Err(Problem::new(ErrorCode::AckMemory, detail))
    }
}
