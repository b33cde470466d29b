//! The failover window: how long the journal keeps what a store with an asynchronous standby has stored.
//!
//! A standby may be behind the server that it follows. What such a store has answered to have is kept in the journal for
//! `settle`, and that is time in which the lane was seen to be in touch with its store: while the store is down, or
//! isn't asked, a standby doesn't get any nearer either. Each contact shows besides that the store is still where the lane
//! has brought it, so that nothing is let go between a failover and its being noticed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often a lane that has nothing to write asks its store where it stands, as long as something isn't settled.
pub(crate) const PROBE_STORE_EVERY: Duration = Duration::from_secs(10);
/// As much at most is thought to have passed in touch between two contacts: what happened in a longer one isn't known.
const GAP_MAX: Duration = Duration::from_secs(30);

/// A lane's contacts with its store.
#[derive(Debug, Default)]
pub(crate) struct ContactLog(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    steady: ContactTime,
    last: Option<Instant>,
    wanted: Duration,
}

/// What contacts came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContactTime {
    /// Time in touch with the store: between contacts that came one after the other, without a failure.
    pub(crate) time: Duration,
    /// How often the store was found to have less than it had taken.
    pub(crate) setbacks: u64,
}

impl ContactLog {
    fn held(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has answered, and stands where the lane has brought it.
    pub(crate) fn contacted(&self) {
        let (mut state, now) = (self.held(), Instant::now());
        let since = state.last.map_or(Duration::ZERO, |last| now.duration_since(last));
        state.steady.time += since.min(GAP_MAX);
        state.last = Some(now);
    }

    /// The lane can't go on: until the next contact no time counts.
    pub(crate) fn interrupted(&self) {
        self.held().last = None;
    }

    /// The store has less than it had taken.
    pub(crate) fn set_back(&self) {
        let mut state = self.held();
        state.steady.setbacks += 1;
        state.last = None;
    }

    /// Something was stored that settles in this time.
    pub(crate) fn wait_for(&self, settle: Duration) {
        let mut state = self.held();
        // Whoever looks on may see it a contact later.
        state.wanted = state.steady.time + settle + PROBE_STORE_EVERY;
    }

    /// When the store is to be asked, if it is.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let state = self.held();
        let last = || state.last.map_or_else(Instant::now, |last| last + PROBE_STORE_EVERY);
        (state.steady.time < state.wanted).then(last)
    }

    pub(crate) fn steady(&self) -> ContactTime {
        self.held().steady
    }
}

/// Where a lane stood, by its time in touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailoverWindow {
    setbacks: u64,
    history: VecDeque<(Duration, u64)>,
}

impl FailoverWindow {
    /// Notes where the lane stands.
    pub(crate) fn note(&mut self, steady: ContactTime, cursor: u64) {
        if self.setbacks != steady.setbacks {
            self.setbacks = steady.setbacks;
            self.history.clear();
        }
        match self.history.back_mut() {
            Some((_, known)) if *known == cursor => {}
            Some((time, known)) if *time == steady.time => *known = cursor,
            _ => self.history.push_back((steady.time, cursor)),
        }
    }

    /// Up to where everything was stored for `settle`.
    pub(crate) fn passed(&mut self, steady: ContactTime, settle: Duration) -> u64 {
        let is_old = |entry: &(Duration, u64)| steady.time.saturating_sub(entry.0) >= settle;
        while self.history.get(1).is_some_and(is_old) {
            self.history.pop_front();
        }
        self.history.front().filter(|entry| is_old(entry)).map_or(0, |(_, cursor)| *cursor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> ContactTime {
        ContactTime { time: Duration::from_secs(seconds), setbacks: 0 }
    }

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn what_was_stored_is_let_go_after_its_time_and_not_with_what_came_later() {
        let mut settling = FailoverWindow::default();
        assert_eq!(settling.passed(at(100), MINUTE), 0);
        settling.note(at(0), 5);
        settling.note(at(0), 7);
        settling.note(at(30), 7);
        settling.note(at(31), 9);
        assert_eq!(settling.passed(at(59), MINUTE), 0);
        assert_eq!(settling.passed(at(60), MINUTE), 7, "the same place at a later time isn't younger");
        assert_eq!(settling.passed(at(90), MINUTE), 7);
        assert_eq!(settling.passed(at(91), MINUTE), 9);
    }

    #[test]
    fn a_store_that_was_set_back_begins_to_settle_anew() {
        let mut settling = FailoverWindow::default();
        settling.note(at(0), 9);
        let later = ContactTime { setbacks: 1, ..at(50) };
        settling.note(later, 9);
        assert_eq!(settling.passed(ContactTime { setbacks: 1, ..at(100) }, MINUTE), 0);
        assert_eq!(settling.passed(ContactTime { setbacks: 1, ..at(110) }, MINUTE), 9);
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
        contacts.wait_for(MINUTE);
        assert_eq!(contacts.due_at(), Some(Instant::now() + PROBE_STORE_EVERY));
    }
}
