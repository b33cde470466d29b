//! Objects in flight to the store: several concurrently, each begun when it is committed, and ended in order. While one
//! is sent the next is built: a lane with a backlog keeps the store busy.

use std::collections::VecDeque;
use std::time::Duration;

use limits::OBJECTS_IN_FLIGHT;
use objects::ObjectSink;
use sink::SinkError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::objects::ObjectIntent;
use crate::objects::content::{Account, Content};

/// The outcomes of a run's written events, with the number of positions that could not be read; and how long the
/// attempt took.
pub(crate) type Attempted = (Result<Account, SinkError>, Duration);

async fn write(store: &ObjectSink, intent: &ObjectIntent, contents: Vec<Content>) -> Result<Account, SinkError> {
    let mut written = Account::default();
    for (object, content) in intent.objects.iter().zip(contents) {
        written.add(store.put(&object.manifest, content).await?.account());
    }
    Ok(written)
}

/// Runs with their objects, the oldest first.
#[derive(Default)]
pub(crate) struct Uploads(VecDeque<InFlight>);

/// A committed run.
pub(crate) struct InFlight {
    pub(crate) intent: ObjectIntent,
    /// The store was unavailable since the attempt began: its failure says nothing about the present state of the
    /// store.
    pub(crate) is_stale: bool,
    pub(crate) attempt: UploadAttempt,
}

/// An attempt to write the objects of a run. It continues in the background, and is aborted when the value is dropped.
pub(crate) struct UploadAttempt(JoinHandle<Attempted>);

impl UploadAttempt {
    /// Begins to write the objects of a run; their contents are in the same order.
    pub(crate) fn begin(store: &ObjectSink, intent: &ObjectIntent, contents: Vec<Content>) -> Self {
        let (store, intent) = (store.clone(), intent.clone());
        Self(tokio::spawn(async move {
            let started = Instant::now();
            (write(&store, &intent, contents).await, started.elapsed())
        }))
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> Attempted {
        let ended = (&mut self.0).await;
        ended.unwrap_or_else(|_| {
            let reason = "BUG: the upload of the object ended without a result; the lane retries. Report this";
            (Err(SinkError::Unavailable(reason.into())), Duration::ZERO)
        })
    }
}

impl Drop for UploadAttempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Uploads {
    /// Begins to write the objects of a run.
    pub(crate) fn begin(&mut self, store: &ObjectSink, intent: ObjectIntent, contents: Vec<Content>) {
        let attempt = UploadAttempt::begin(store, &intent, contents);
        self.0.push_back(InFlight { intent, is_stale: false, attempt });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one must end before another begins.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= OBJECTS_IN_FLIGHT
    }

    /// Whether the oldest attempt has ended.
    pub(crate) fn has_landed(&self) -> bool {
        self.0.front().is_some_and(|oldest| oldest.attempt.0.is_finished())
    }

    /// The store was unavailable, and is available again.
    pub(crate) fn outlast(&mut self) {
        self.0.iter_mut().for_each(|object| object.is_stale = true);
    }

    pub(crate) fn pop(&mut self) -> Option<InFlight> {
        self.0.pop_front()
    }

    pub(crate) fn intents(&self) -> impl Iterator<Item = &ObjectIntent> {
        self.0.iter().map(|object| &object.intent)
    }
}
