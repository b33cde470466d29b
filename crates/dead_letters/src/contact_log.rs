//! Contacts with a store: how long a lane has had contact with it, and how often the store had less than it had stored.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often an idle lane asks its store for the cursor while a failover window is open.
pub(crate) const PROBE_STORE_EVERY: Duration = Duration::from_secs(10);
/// The longest gap between two contacts that counts as contact: nothing is known of what happened in a longer one.
const GAP_MAX: Duration = Duration::from_secs(30);

/// A lane's contacts with its store.
#[derive(Debug, Default)]
pub struct ContactLog(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    steady: ContactTime,
    last: Option<Instant>,
    wanted: Duration,
}

/// The sum of the contacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContactTime {
    /// Time in contact with the store: between successive contacts without a failure.
    pub time: Duration,
    /// How often the store had less than it had stored before.
    pub setbacks: u64,
}

impl ContactLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has answered, and its cursor is where the lane left it.
    pub fn contacted(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        let since = state.last.map_or(Duration::ZERO, |last| now.duration_since(last));
        state.steady.time += since.min(GAP_MAX);
        state.last = Some(now);
    }

    /// The lane can't continue: no time counts until the next contact.
    pub fn interrupted(&self) {
        self.lock().last = None;
    }

    /// The store has less than it had stored before.
    pub fn set_back(&self) {
        let mut state = self.lock();
        state.steady.setbacks += 1;
        state.last = None;
    }

    /// Something was stored whose failover window is this long.
    pub fn wait_for(&self, settle: Duration) {
        let mut state = self.lock();
        // A reader of the contacts may see them one contact later.
        state.wanted = state.steady.time + settle + PROBE_STORE_EVERY;
    }

    /// When to ask the store, if at all.
    pub fn due_at(&self) -> Option<Instant> {
        let state = self.lock();
        let last = || state.last.map_or_else(Instant::now, |last| last + PROBE_STORE_EVERY);
        (state.steady.time < state.wanted).then(last)
    }

    /// The sum of the contacts so far.
    pub fn steady(&self) -> ContactTime {
        self.lock().steady
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> ContactTime {
        ContactTime { time: Duration::from_secs(seconds), setbacks: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn time_counts_between_contacts_that_follow_each_other() {
        let contacts = ContactLog::default();
        contacts.contacted();
        let pass = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
        pass(10).await;
        contacts.contacted();
        assert_eq!(contacts.steady(), at(10));
        contacts.interrupted();
        pass(10).await;
        contacts.contacted();
        assert_eq!(contacts.steady(), at(10), "it was down");
        pass(500).await;
        contacts.contacted();
        assert_eq!(contacts.steady(), at(40), "it wasn't asked");
        assert_eq!(contacts.due_at(), None);
        contacts.wait_for(Duration::from_mins(1));
        assert_eq!(contacts.due_at(), Some(Instant::now() + PROBE_STORE_EVERY));
    }
}
