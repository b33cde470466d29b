//! The status of a batch of which some records are accepted and others are rejected.

use std::fmt;
use std::str::FromStr;

/// The status of the response to such a batch. Some senders resend a whole batch after a 207.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialStatus {
    /// 207.
    #[default]
    MultiStatus,
    /// 200, with the same body.
    Ok,
}

/// A text that isn't such a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the status of a partly accepted batch must be 200 or 207")]
pub struct InvalidPartialStatus;

impl PartialStatus {
    /// The status as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MultiStatus => "207",
            Self::Ok => "200",
        }
    }
}

impl fmt::Display for PartialStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PartialStatus {
    type Err = InvalidPartialStatus;

    fn from_str(text: &str) -> Result<Self, InvalidPartialStatus> {
        [Self::MultiStatus, Self::Ok].into_iter().find(|status| status.as_str() == text).ok_or(InvalidPartialStatus)
    }
}
