//! The failover window: how long the journal keeps what a store with an asynchronous standby has stored.
//!
//! A standby may have less than the server that it follows. So the journal keeps what such a store has stored for
//! `settle`. Only time in contact with the store counts: while the store is down, or is not asked, a standby does not
//! catch up. Each contact also shows that the store's cursor is still where the lane left it. So no segment is freed
//! between a failover and its detection.

use std::collections::VecDeque;
use std::time::Duration;

use dead_letters::ContactTime;

/// The cursors of a lane, by its time in contact.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailoverWindow {
    setbacks: u64,
    history: VecDeque<(Duration, u64)>,
}

impl FailoverWindow {
    /// Notes the lane's cursor.
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

    /// The position up to which everything was stored for `settle`.
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
    fn stored_events_are_freed_after_their_failover_window() {
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
    fn setback_restarts_the_failover_window() {
        let mut settling = FailoverWindow::default();
        settling.note(at(0), 9);
        let later = ContactTime { setbacks: 1, ..at(50) };
        settling.note(later, 9);
        assert_eq!(settling.passed(ContactTime { setbacks: 1, ..at(100) }, MINUTE), 0);
        assert_eq!(settling.passed(ContactTime { setbacks: 1, ..at(110) }, MINUTE), 9);
    }
}
