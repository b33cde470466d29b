//! The handle of a store, as delivery, the writer and the readers hold it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use event::read::{Found, Lookup, Page, Query, ReadError};

use crate::outcome::make_visible;
use crate::{
    Batch, Capabilities, Claim, Cursor, Examination, Held, Mark, Reason, Retention, SinkError, Store, Takeover,
    WriteOutcome,
};

/// A sink: the handle of one store of any kind. It is the only way to call a [`Store`], so no store's text reaches a
/// terminal or a log with control characters in it.
///
/// Cheap to clone: the clones share the store's connections. Each lane has one, and all may call concurrently.
#[derive(Clone)]
pub struct Sink(Arc<dyn Store>);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

impl Sink {
    /// A sink that isn't connected yet. Nothing is opened or created before the first call.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }

    /// The store, if it is of this type.
    #[must_use]
    pub fn downcast_ref<S: Store>(&self) -> Option<&S> {
        let store: &dyn Any = &*self.0;
        store.downcast_ref()
    }

    /// Connects to the store, creates what is missing in it and checks what exists. Connecting again is harmless. The
    /// other calls reconnect if a connection was lost or closed.
    ///
    /// # Errors
    /// [`SinkError`] says whether it may pass or needs an operator.
    pub async fn connect(&self) -> Result<(), SinkError> {
        self.0.connect().await.map_err(SinkError::visible)
    }

    /// Examines the store: connection, version, clock, rights and settings. It creates nothing, unless `may_write`: then it may store an
    /// object that it removes again. The caller limits the time.
    ///
    /// # Errors
    /// [`SinkError`] if the store can't be used at all.
    pub async fn examine(&self, may_write: bool) -> Result<Examination, SinkError> {
        self.0.examine(may_write).await.map(Examination::visible).map_err(SinkError::visible)
    }

    /// The lane's cursor in the store, for readers. Delivery calls [`Self::held`], whose claims it needs as well.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer.
    pub async fn cursor(&self, lane: &Lane) -> Result<Cursor, SinkError> {
        Ok(self.held(lane).await?.map_or(Cursor::Delivery, |held| Cursor::Store(held.position)))
    }

    /// What the store holds of `lane`: its cursor and the claims on it. `None` if the store keeps no cursors.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer.
    pub async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        self.0.held(lane).await.map_err(SinkError::visible)
    }

    /// Replaces the claim that the store holds on `lane` by `claim`, together with the cursor, and returns what the store holds then. If
    /// `takeover` doesn't allow it, the store keeps what it held. To claim again is harmless. A store without cursors has nothing to claim.
    ///
    /// # Errors
    /// [`SinkError`] if the call failed: whether it took effect is unknown.
    pub async fn claim(&self, lane: &Lane, claim: Claim, takeover: Takeover) -> Result<Option<Held>, SinkError> {
        self.0.claim(lane, claim, &takeover).await.map_err(SinkError::visible)
    }

    /// The mark of the store that the next call reaches. It is created if the store has none; `None` if a store can't keep one. For a sink
    /// of a gateway: the mark of the bound store.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer, or rejects the mark.
    pub async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        match self.0.binding() {
            Some(binding) => Ok(binding.mark()),
            None => self.0.mark().await.map_err(SinkError::visible),
        }
    }

    /// Stores `batch`, or returns which of its records the store rejects. A lane has one write in flight, and its
    /// batches are in the order of their positions; an earlier one may be sent again. A transactional store that holds
    /// another process's claim on the lane writes nothing, and the call fails.
    ///
    /// # Errors
    /// [`SinkError`] if the call failed as a whole: whether it took effect is unknown, and delivery sends the same batch again.
    pub async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        self.0.write(batch).await.map(WriteOutcome::visible).map_err(SinkError::visible)
    }

    /// Whether [`Self::read`] returns events.
    #[must_use]
    pub fn can_read(&self) -> bool {
        self.0.can_read()
    }

    /// Reads stored events. Reads and writes don't wait for one another: a read opens its own connection.
    ///
    /// # Errors
    /// [`ReadError`] says whether to ask again later.
    pub async fn read(&self, query: Query) -> Result<Page, ReadError> {
        self.0.read(query).await.map_err(visible)
    }

    /// Looks up stored events by their ids, with as few queries as the store allows.
    ///
    /// # Errors
    /// [`ReadError`] says whether to ask again later.
    pub async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        self.0.get(lookup).await.map_err(visible)
    }

    /// Ends the calls in flight and closes the connections, for all clones. A later call connects again.
    ///
    /// # Errors
    /// [`SinkError`] if the store could not be closed cleanly. Everything that it has acknowledged is still stored.
    pub async fn close(&self) -> Result<(), SinkError> {
        self.0.close().await.map_err(SinkError::visible)
    }

    /// Whether both are clones of one sink: closing the one closes the other.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What the store may lose although it has answered, as found at the last connect: a message for the log. `None` if
    /// there is nothing, or it is unknown.
    #[must_use]
    pub fn warning(&self) -> Option<Reason> {
        self.0.warning().map(|mut reason| {
            make_visible(&mut reason);
            reason
        })
    }

    /// The deletions of a store that deletes old events; `None` for other stores.
    #[must_use]
    pub fn retention(&self) -> Option<&Retention> {
        self.0.retention()
    }

    /// The capabilities that delivery needs before the first call.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// The mark of the store that a gateway's sink is bound to; `None` for other sinks, and while the sink isn't bound.
    #[must_use]
    pub fn bound_to(&self) -> Option<Mark> {
        self.0.binding()?.mark()
    }

    /// Whether a gateway's sink has found a writer with another store than the bound one.
    #[must_use]
    pub fn has_other_store(&self) -> bool {
        self.0.binding().is_some_and(|binding| binding.has_other_store())
    }

    /// Binds a gateway's sink to the store with this mark, or with `None` to the next store that is found. No effect on other sinks.
    pub fn bind(&self, mark: Option<Mark>) {
        if let Some(binding) = self.0.binding() {
            binding.bind(mark);
        }
    }

    /// The writer that got the lane's last batch; `None` for a sink that writes to its store itself.
    #[must_use]
    pub fn server_of(&self, lane: &Lane) -> Option<Arc<str>> {
        self.0.binding()?.server_of(lane)
    }

    /// The longest pause before the next attempt, if the last failure calls for a shorter one than usual.
    #[must_use]
    pub fn retry_max(&self) -> Option<Duration> {
        self.0.binding()?.retry_max()
    }
}

/// The error without control characters in the store's text.
fn visible(error: ReadError) -> ReadError {
    match error {
        ReadError::Unavailable(mut reason) => {
            make_visible(&mut reason);
            ReadError::Unavailable(reason)
        }
        other => other,
    }
}
