//! Objects on their way to the store: several at once, each begun when it is committed, and ended in their order. While one
//! is sent the next is made: a lane that has a backlog keeps the store busy.

use std::collections::VecDeque;
use std::time::Duration;

use ledger::Tally;
use limits::OBJECTS_IN_FLIGHT;
use objects::ObjectSink;
use sink::SinkError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::objects::ObjectIntent;
use crate::objects::content::{Account, Content};

/// What the events of a run came to that was written, and how many positions couldn't be read; how long the attempt took.
pub(crate) type Attempted = (Result<Account, SinkError>, Duration);

async fn write(store: &ObjectSink, intent: &ObjectIntent, contents: Vec<Content>) -> Result<Account, SinkError> {
    let mut written = (Tally::new(), 0);
    for (object, content) in intent.objects.iter().zip(contents) {
        let (tally, lost) = store.put(&object.manifest, content).await?.account();
        written.0.extend(tally);
        written.1 += lost;
    }
    Ok(written)
}

/// Runs with their objects, the oldest first.
#[derive(Default)]
pub(crate) struct Uploads(VecDeque<InFlight>);

/// One that is committed.
pub(crate) struct InFlight {
    pub(crate) intent: ObjectIntent,
    /// The store was away since the attempt began: that it failed says nothing of how the store is now.
    pub(crate) is_stale: bool,
    pub(crate) attempt: UploadAttempt,
}

/// An attempt to write the objects of a run, which goes on by itself. It is given up with the value.
pub(crate) struct UploadAttempt(JoinHandle<Attempted>);

impl UploadAttempt {
    /// Begins to write the objects of a run, the contents of which are given in their order.
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
            let reason = "its attempt ended without an answer: Forebay has a bug, please report it";
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

    /// Whether the oldest needn't be waited for.
    pub(crate) fn has_landed(&self) -> bool {
        self.0.front().is_some_and(|oldest| oldest.attempt.0.is_finished())
    }

    /// The store was away, and is there again.
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
