//! Claims: which process delivers a lane. A data directory may be copied, and then two servers deliver the same lanes:
//! their cursors alone do not distinguish them.
//!
//! Each process generates a random claim when it starts. Before it writes, it exchanges the claim that the store holds
//! for its own. The store keeps the claim next to the lane's cursor, and a write checks it in its own transaction. So
//! the process that claimed a lane last continues, and nothing of another process is written any longer.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use text::hex::{self, Hex};

/// A delivering process: 128 random bits that no other process has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim(pub [u8; 16]);

impl Claim {
    /// Whether a process with the claim `of_batch` may write if the store holds `held`. A lane without a claim belongs
    /// to the process that writes first.
    #[must_use]
    pub fn admits(held: Option<Self>, of_batch: Option<Self>) -> bool {
        held.is_none() || held == of_batch
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a claim is written as 32 hexadecimal digits")]
pub struct InvalidClaim;

event::serde_as_text!(Claim);

impl FromStr for Claim {
    type Err = InvalidClaim;

    fn from_str(text: &str) -> Result<Self, InvalidClaim> {
        hex::decode_array(text).map(Self).ok_or(InvalidClaim)
    }
}

/// What a transactional store holds of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The cursor: everything up to here is in the store; 0 if the store knows nothing of the lane.
    pub position: u64,
    /// The claims on the lane, each once. None before the first claim; several if a lane has several cursors and an
    /// exchange was interrupted.
    pub claims: Vec<Claim>,
}

impl Held {
    /// The state of a lane with one cursor.
    #[must_use]
    pub fn new(position: u64, claim: Option<Claim>) -> Self {
        Self { position, claims: claim.into_iter().collect() }
    }
}

/// When a claim replaces the one that the store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// If that is none, the same, or one of these. Otherwise nothing changes.
    Known(Arc<[Claim]>),
    /// Always; it also sets the lane's cursor to this position, even backwards.
    Forced(u64),
}

impl Takeover {
    /// Whether `new` replaces `held`.
    #[must_use]
    pub fn replaces(&self, held: Option<Claim>, new: Claim) -> bool {
        match (self, held) {
            (Self::Forced(_), _) | (_, None) => true,
            (Self::Known(known), Some(held)) => held == new || known.contains(&held),
        }
    }

    /// The cursor after it, if it was at `position`.
    #[must_use]
    pub const fn position(&self, position: u64) -> u64 {
        match self {
            Self::Known(_) => position,
            Self::Forced(position) => *position,
        }
    }
}

/// The message for the operator if a write is rejected. The lane then reads which claim the store holds, and stops if
/// it is not its own.
pub const CLAIMED_BY_ANOTHER: &str =
    "another server has claimed this lane, so nothing was written: a copy of this data directory is in use";
