//! A store in the process's memory, for tests of code that writes to sinks: it records each call, and fails, rejects,
//! stalls or loses answers on command.

mod page;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use event::read::{Page, Query, ReadError};
use event::{EventId, Lane};
use tokio::sync::watch;

use sink::{Batch, Capabilities, Claim, Held, SinkError, Store, Takeover, WriteOutcome};
pub use state::{Call, StoredRecord};
use state::{Data, State, unavailable};

/// The store and its remote control. Clones, and all sinks built from them, share one store.
#[derive(Clone)]
pub struct MemoryHandle {
    shared: Arc<Shared>,
}

struct Shared {
    fenced: bool,
    state: Mutex<State>,
    blocked: watch::Sender<bool>,
    /// Counts the calls that have ended.
    ended: watch::Sender<u64>,
    settle: Duration,
    is_remote: bool,
}

/// What a store had at one moment.
pub struct Standby(Data);

impl MemoryHandle {
    /// An empty store that keeps cursors, and commits all of a batch or nothing.
    #[must_use]
    pub fn fenced() -> Self {
        Self::new(true, Duration::ZERO, false)
    }

    /// The same as [`Self::fenced`], as if it belonged to a writer.
    #[must_use]
    pub fn remote() -> Self {
        Self::new(true, Duration::ZERO, true)
    }

    /// An empty store that keeps no cursors and answers for each record separately.
    #[must_use]
    pub fn keyed() -> Self {
        Self::new(false, Duration::ZERO, false)
    }

    /// The same as [`Self::fenced`], but a failover may lose what it stored in this time.
    #[must_use]
    pub fn replicated(settle: Duration) -> Self {
        Self::new(true, settle, false)
    }

    fn new(fenced: bool, settle: Duration, is_remote: bool) -> Self {
        let state = Mutex::default();
        let (blocked, ended) = (watch::Sender::new(false), watch::Sender::new(0));
        Self { shared: Arc::new(Shared { fenced, state, blocked, ended, settle, is_remote }) }
    }

    /// A copy of what the store has now, cursors too.
    #[must_use]
    pub fn standby(&self) -> Standby {
        Standby(self.state().data.clone())
    }

    /// A copy takes over: later events are lost, although they were answered.
    pub fn fail_over(&self, standby: Standby) {
        self.state().data = standby.0;
    }

    /// Makes the next `calls` calls of `connect`, `cursor` and `write` fail as `Unavailable`, without effect. Replaces
    /// an earlier number; 0 ends it.
    pub fn fail_next(&self, calls: usize) {
        self.state().failing = calls;
    }

    /// Makes the next `writes` writes take effect but fail as `Unavailable`: their answers are lost.
    pub fn lose_answers(&self, writes: usize) {
        self.lose_answers_after(0, writes);
    }

    /// The same for `writes` writes, after the next `answered` ones are answered.
    pub fn lose_answers_after(&self, answered: usize, writes: usize) {
        let mut state = self.state();
        (state.sparing, state.losing) = (answered, writes);
    }

    /// Makes the next exchanges of claims take effect but fail as `Unavailable`.
    pub fn lose_claims(&self, exchanges: usize) {
        self.state().losing_claims = exchanges;
    }

    /// Makes each call of `connect` panic, as a driver with a bug does.
    pub fn panic_in_connect(&self) {
        self.state().panics = true;
    }

    /// Rejects the event `id` permanently, until [`Self::heal`].
    pub fn refuse_id(&self, id: EventId) {
        self.state().refused_ids.insert(id);
    }

    /// Rejects the event `id` permanently, until [`Self::heal`]. A transactional store that accepts nothing of a batch
    /// cannot distinguish such an event's fault from its own, and fails as `Misconfigured`; an idempotent store answers
    /// [`sink::RetryScope::Unclear`].
    pub fn doubt_id(&self, id: EventId) {
        self.state().doubted_ids.insert(id);
    }

    /// Rejects events of type `name` permanently, until [`Self::heal`].
    pub fn refuse_type(&self, name: &str) {
        self.state().refused_types.insert(name.into());
    }

    /// Answers "retry" for the event `id`, until [`Self::heal`]. A transactional store can't do so for one record: it
    /// fails the whole batch as `Unavailable`.
    pub fn retry_id(&self, id: EventId) {
        self.state().retried_ids.insert(id);
    }

    /// Ends every fault except [`Self::block`].
    pub fn heal(&self) {
        self.state().heal();
    }

    /// Blocks every write before it takes effect, until [`Self::release`].
    pub fn block(&self) {
        self.shared.blocked.send_replace(true);
    }

    /// Continues the blocked writes.
    pub fn release(&self) {
        self.shared.blocked.send_replace(false);
    }

    /// The event stored under `id`.
    #[must_use]
    pub fn get(&self, id: EventId) -> Option<StoredRecord> {
        self.state().get(id).cloned()
    }

    /// Everything stored, in the order in which ids came first.
    #[must_use]
    pub fn events(&self) -> Vec<StoredRecord> {
        self.state().data.events.clone()
    }

    /// How many events are stored.
    #[must_use]
    pub fn count(&self) -> usize {
        self.state().data.events.len()
    }

    /// Every write that has ended, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// The lane's cursor in a transactional store; 0 for a lane that was never written.
    #[must_use]
    pub fn position(&self, lane: &Lane) -> u64 {
        self.state().position(lane)
    }

    /// Waits until `condition` holds. It is asked now and after each call that ends.
    pub async fn until(&self, condition: impl Fn(&Self) -> bool) {
        let mut ended = self.shared.ended.subscribe();
        // The sender lives in this handle, so waiting for it can't fail.
        let _ = ended.wait_for(|_| condition(self)).await;
    }

    fn count_call(&self) {
        self.shared.ended.send_modify(|ended| *ended += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryHandle {
    fn capabilities(&self) -> Capabilities {
        let Shared { fenced, settle, is_remote, .. } = *self.shared;
        Capabilities { fenced, settle, remote: is_remote, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        assert!(!self.state().panics, "the memory store is set to panic");
        let connected = self.state().fail();
        self.count_call();
        connected
    }

    async fn held(&self, lane: &Lane) -> Result<Option<Held>, SinkError> {
        let held = {
            let mut state = self.state();
            state.fail().map(|()| state.held(lane))
        };
        self.count_call();
        held.map(|held| self.shared.fenced.then_some(held))
    }

    async fn claim(&self, lane: &Lane, claim: Claim, takeover: &Takeover) -> Result<Option<Held>, SinkError> {
        if !self.shared.fenced {
            return Ok(None);
        }
        let held = self.state().claim(lane, claim, takeover);
        self.count_call();
        held.map(Some)
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        let mut blocked = self.shared.blocked.subscribe();
        if blocked.wait_for(|blocked| !blocked).await.is_err() {
            return Err(unavailable("the store is gone"));
        }
        let answer = self.state().write(batch, self.shared.fenced);
        self.count_call();
        answer
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        page::read(&self.state().data.events, &query)
    }

    fn can_read(&self) -> bool {
        true
    }
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHandle").field("fenced", &self.shared.fenced).field("count", &self.count()).finish()
    }
}

#[cfg(test)]
mod tests;
