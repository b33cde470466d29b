//! Why a lane can't make progress.

use eventlog::{CommitError, OpenError};

/// Why a lane can't make progress now.
#[derive(Debug, thiserror::Error)]
pub enum Blocked {
    /// A retry may succeed: there is no space, or a file or directory can't be used now.
    #[error("{0}")]
    Retry(String),
    /// A retry can't succeed: it needs an operator, or a restart that reads the disk again.
    #[error("{0}")]
    Stop(String),
}

impl From<OpenError> for Blocked {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io { .. } | OpenError::Commit(CommitError::NoSpace { .. }) => Self::Retry(error.to_string()),
            _ => Self::Stop(error.to_string()),
        }
    }
}
