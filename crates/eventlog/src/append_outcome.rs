//! The outcome of an append, and the wait for its commit.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use event::Position;

use crate::append_error::AppendError;
use crate::commit_group::{CommitStatus, CommitStatusCell};
use crate::dedup::{Conflict, Original};
use crate::shard_head::{Head, poll_status};

/// Waits until the appended events are durable.
pub struct Append<'a> {
    pub(crate) head: &'a Mutex<Head>,
    pub(crate) status: Arc<CommitStatusCell>,
    pub(crate) first: Position,
}

impl Append<'_> {
    /// The position of the request's first event, if it becomes durable.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.first
    }
}

impl Future for Append<'_> {
    type Output = Result<(), AppendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let status = match self.status.get() {
            CommitStatus::Pending => poll_status(self.head, &self.status, context),
            finished => finished,
        };
        match status {
            CommitStatus::Pending => Poll::Pending,
            CommitStatus::Durable => Poll::Ready(Ok(())),
            CommitStatus::NoSpace => Poll::Ready(Err(AppendError::NoSpace)),
            CommitStatus::Failed => Poll::Ready(Err(AppendError::Failed)),
        }
    }
}

/// The outcome of an append of events that may be duplicates.
pub enum AppendOutcome<'a> {
    /// They are appended.
    Appended(Append<'a>),
    /// They are duplicates, with the same bytes.
    Duplicate(Original),
    /// Another event has their id, with other bytes.
    IdConflict,
}

impl From<Conflict> for AppendOutcome<'_> {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Duplicate(original) => Self::Duplicate(original),
            Conflict::OtherBytes => Self::IdConflict,
        }
    }
}

impl<'a> AppendOutcome<'a> {
    /// The append, if there was one.
    #[must_use]
    pub fn appended(self) -> Option<Append<'a>> {
        match self {
            Self::Appended(append) => Some(append),
            Self::Duplicate(_) | Self::IdConflict => None,
        }
    }
}
