//! The failover window: how long the journal keeps what a store with an asynchronous standby has stored.
//!
//! A standby may be behind the server that it follows. What such a store has answered to have is kept in the journal for
//! `settle`, and that is time in which the lane was seen to be in touch with its store: while the store is down, or
//! isn't asked, a standby doesn't get any nearer either. Each contact shows besides that the store is still where the lane
//! has brought it, so that nothing is let go between a failover and its being noticed.

use std::collections::VecDeque;
use std::time::Duration;

use dead_letters::ContactTime;

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
}
