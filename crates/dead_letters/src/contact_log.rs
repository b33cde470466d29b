//! Contacts with a store: how long a lane has been in touch with it, and how often the store was found to have less than it had stored.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often a lane that has nothing to write asks its store where it stands, as long as something isn't settled.
pub(crate) const PROBE_STORE_EVERY: Duration = Duration::from_secs(10);
/// As much at most is thought to have passed in touch between two contacts: what happened in a longer one isn't known.
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

/// What contacts came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContactTime {
    /// Time in touch with the store: between contacts that came one after the other, without a failure.
    pub time: Duration,
    /// How often the store was found to have less than it had taken.
    pub setbacks: u64,
}

impl ContactLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has answered, and stands where the lane has brought it.
    pub fn contacted(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        let since = state.last.map_or(Duration::ZERO, |last| now.duration_since(last));
        state.steady.time += since.min(GAP_MAX);
        state.last = Some(now);
    }

    /// The lane can't go on: until the next contact no time counts.
    pub fn interrupted(&self) {
        self.lock().last = None;
    }

    /// The store has less than it had taken.
    pub fn set_back(&self) {
        let mut state = self.lock();
        state.steady.setbacks += 1;
        state.last = None;
    }

    /// Something was stored that settles in this time.
    pub fn wait_for(&self, settle: Duration) {
        let mut state = self.lock();
        // Whoever looks on may see it a contact later.
        state.wanted = state.steady.time + settle + PROBE_STORE_EVERY;
    }

    /// When the store is to be asked, if it is.
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
