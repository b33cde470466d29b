//! Objects on their way to the store: several at once, each begun when it is committed, and ended in their order. While one
//! is sent the next is made: a lane that has a backlog keeps the store busy.

use std::collections::VecDeque;
use std::time::Duration;

use event::limits::OBJECTS_IN_FLIGHT;
use objects::ObjectSink;
use sink::SinkError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::commitment::Commitment;
use super::content::{Account, Content};
use super::sending::Sending;
use crate::ledger::Tally;

/// What the events of a run came to that was written, and how many positions couldn't be read; how long the attempt took.
pub(super) type Attempted = (Result<Account, SinkError>, Duration);

async fn write(store: &ObjectSink, commitment: &Commitment, contents: Vec<Content>) -> Result<Account, SinkError> {
    let mut written = (Tally::new(), 0);
    for (object, content) in commitment.objects.iter().zip(contents) {
        let (tally, lost) = store.put(&object.manifest, content).await?.account();
        written.0.extend(tally);
        written.1 += lost;
    }
    Ok(written)
}

/// Runs with their objects, the oldest first.
#[derive(Default)]
pub(super) struct Flight(VecDeque<InFlight>);

/// One that is committed.
pub(super) struct InFlight {
    pub(super) commitment: Commitment,
    /// The store was away since the attempt began: that it failed says nothing of how the store is now.
    pub(super) is_stale: bool,
    pub(super) attempt: Attempt,
}

/// An attempt to write the objects of a run, which goes on by itself. It is given up with the value.
pub(super) struct Attempt(JoinHandle<Attempted>);

impl Attempt {
    /// Begins to write the objects of a run, the contents of which are given in their order.
    pub(super) fn begin(
        (store, sending): (&ObjectSink, &Sending),
        commitment: &Commitment,
        contents: Vec<Content>,
    ) -> Self {
        let (store, committed, is_on_this_disk) = (store.clone(), commitment.clone(), store.is_on_this_disk());
        let attempt = async move {
            let started = Instant::now();
            (write(&store, &committed, contents).await, started.elapsed())
        };
        // Files are written by threads that may block, whoever begins it.
        Self(if is_on_this_disk { tokio::spawn(attempt) } else { sending.spawn(attempt) })
    }

    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> Attempted {
        let ended = (&mut self.0).await;
        ended.unwrap_or_else(|_| {
            let reason = "its attempt ended without an answer: Forebay has a bug, please report it";
            (Err(SinkError::Unavailable(reason.into())), Duration::ZERO)
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Flight {
    /// Begins to write the objects of a run.
    pub(super) fn begin(&mut self, sent_to: (&ObjectSink, &Sending), commitment: Commitment, contents: Vec<Content>) {
        let attempt = Attempt::begin(sent_to, &commitment, contents);
        self.0.push_back(InFlight { commitment, is_stale: false, attempt });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one must end before another begins.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= OBJECTS_IN_FLIGHT
    }

    /// Whether the oldest needn't be waited for.
    pub(super) fn has_landed(&self) -> bool {
        self.0.front().is_some_and(|oldest| oldest.attempt.0.is_finished())
    }

    /// The store was away, and is there again.
    pub(super) fn outlast(&mut self) {
        self.0.iter_mut().for_each(|object| object.is_stale = true);
    }

    pub(super) fn pop(&mut self) -> Option<InFlight> {
        self.0.pop_front()
    }

    pub(super) fn commitments(&self) -> impl Iterator<Item = &Commitment> {
        self.0.iter().map(|object| &object.commitment)
    }
}
