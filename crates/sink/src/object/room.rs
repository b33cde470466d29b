//! Room for the bytes of objects that a store keeps in memory: so many for all its objects together.
//!
//! Whoever makes an object out of the journal waits for room. Lines that are made ahead, while events are gathered, take what there is
//! and never wait; and they leave enough for one object of the others. So whoever waits gets room in the end: what holds it either
//! needs no more to end, or is of those who leave some.

use std::sync::Arc;

use event::limits::{OBJECTS_AHEAD_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for the bytes that a store keeps, of all its objects. Cheap to clone: the clones share it.
#[derive(Clone, Debug)]
pub(super) struct Room {
    all: Arc<Semaphore>,
    /// The part of it that lines may take which are made ahead.
    ahead: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(OBJECTS_KEPT_BYTES_MAX)),
            ahead: Arc::new(Semaphore::new(OBJECTS_AHEAD_BYTES_MAX)),
        }
    }

    /// Room for an object of so many bytes of lines, in the order in which it is asked for. What is larger than an object may keep has as
    /// much as that, since it may come to less when it is coded.
    #[cfg(feature = "objects-over-http")]
    pub(super) async fn take(&self, line_bytes: u64) -> Result<Held, tokio::sync::AcquireError> {
        let most = event::limits::OBJECT_KEPT_BYTES_MAX;
        let bytes = u32::try_from(line_bytes).unwrap_or(u32::MAX).min(most);
        Ok(Held { all: self.all.clone().acquire_many_owned(bytes).await?, ahead: None })
    }

    /// Room for so many bytes of lines that are made ahead, if there is any now that nobody waits for.
    pub(super) fn take_ahead(&self, bytes: usize) -> Option<Held> {
        let bytes = u32::try_from(bytes).ok()?;
        let ahead = self.ahead.clone().try_acquire_many_owned(bytes).ok()?;
        let all = self.all.clone().try_acquire_many_owned(bytes).ok()?;
        Some(Held { all, ahead: Some(ahead) })
    }
}

/// Room that is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    all: OwnedSemaphorePermit,
    /// As much of the part for lines that are made ahead, if it is such room.
    ahead: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// For how many bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.num_permits()
    }

    /// Takes more, of the same room and kind.
    pub(super) fn join(&mut self, more: Self) {
        self.all.merge(more.all);
        if let (Some(ahead), Some(more)) = (&mut self.ahead, more.ahead) {
            ahead.merge(more);
        }
    }

    /// Gives back what is beyond so many bytes.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let beyond = self.bytes().saturating_sub(bytes);
        drop(self.all.split(beyond));
        drop(self.ahead.as_mut().map(|ahead| ahead.split(beyond)));
    }
}
