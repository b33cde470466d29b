//! What a client wants to be true of its events when they are answered.

use crate::code::Code;
use crate::problem::{Problem, Refused};
use crate::type_table::Known;

/// The values of `Forebay-Ack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ack {
    /// They are durable.
    #[default]
    Disk,
    /// They are in memory, and lost with the process.
    Memory,
    /// Every route of their type has them.
    Stored,
}

impl Ack {
    /// # Errors
    /// The value isn't one of them.
    pub(crate) fn of_header(value: Option<&[u8]>) -> Result<Self, Refused> {
        let Some(value) = value else { return Ok(Self::Disk) };
        let known = [("disk", Self::Disk), ("memory", Self::Memory), ("stored", Self::Stored)];
        let found = known.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, ack)| ack).ok_or_else(|| Problem::of_header("Forebay-Ack is `disk`, `memory` or `stored`"))
    }

    /// Whether events of this type may be answered so.
    ///
    /// # Errors
    /// They are too dear to its owner.
    pub(crate) fn check(self, known: &Known) -> Result<(), Problem> {
        if self != Self::Memory || known.rules.ack_memory {
            return Ok(());
        }
        let name = &known.name;
        let detail = format!(
            "events of type {name} are not answered before they are durable: leave Forebay-Ack out, or set ack_memory = \
             true in [types.{name}]"
        );
        Err(Problem::new(Code::AckMemory, detail))
    }
}
