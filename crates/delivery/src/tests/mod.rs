//! Tests of delivery as a whole, on the simulated disk and a clock that jumps to where something happens.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod aggregates;
mod archive;
mod changes;
mod claims;
mod conditions;
mod dead_letters;
mod deferred;
mod edits;
mod failover_replays;
mod failover_window;
mod harness;
mod objects;
mod out;
mod progress;
mod replays;
mod sequences;
mod single;
mod skips;
mod trouble;

/// What a negative control breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Dead letters are appended but not durable: a crash loses them.
    UnsyncedDead,
    /// A start finds no dead letters, although there are some.
    LostDeadLetters,
    /// An object is written before its manifest is durable: a crash loses it.
    LateManifest,
    /// Results that were journaled before a crash are journaled again.
    ForgetJournaled,
    /// Results are emitted from a state that isn't saved: a crash loses it.
    UnsavedResults,
    /// Segments are freed though an aggregate would read them again.
    ForgetPins,
}

impl Mutation {
    /// The folder that loses at a crash what the process wrote to it.
    const fn unsure_folder(self) -> Option<&'static str> {
        match self {
            Self::UnsyncedDead => Some("/data/dead"),
            Self::LateManifest => Some("/data/objects"),
            Self::UnsavedResults => Some("/data/aggregates"),
            _ => None,
        }
    }
}
