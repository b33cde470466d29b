//! Whether the clock may be believed when rows are deleted by their age: a wrong clock would delete what nothing brings back.

use std::time::{Duration, Instant};

/// The operator has this long, or as long as rows are kept if that is shorter, to correct a clock that is wrong.
const HOLD_MAX: Duration = Duration::from_hours(24);

/// Compares the wall clock with the time that has passed.
pub(super) struct ClockGuard {
    retention: Duration,
    /// The last look: the time that can't jump, and the wall clock.
    seen: Option<(Instant, i64)>,
    held_until: Option<Instant>,
}

/// What came of a look at the clock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Rows may be deleted.
    Believed,
    /// The clock has jumped before, and the operator still has time to correct it.
    Held,
    /// The clock is ahead by so much. Nothing may be deleted for so long.
    Jumped { ahead: Duration, hold: Duration },
}

impl ClockGuard {
    pub(super) const fn new(retention: Duration) -> Self {
        Self { retention, seen: None, held_until: None }
    }

    /// Looks at the wall clock. It is ahead if it passed more time than has passed, and a tenth of `retention`. The first look has nothing but the
    /// newest row: the clock is ahead if it makes even that one too old.
    pub(super) fn look(&mut self, at: Instant, now: i64, newest: Option<i64>) -> Trust {
        let (expected, slack) = match self.seen.replace((at, now)) {
            Some((then, wall)) => (wall.saturating_add(microseconds(at - then)), self.retention / 10),
            None => (newest.unwrap_or(now), self.retention),
        };
        let ahead = Duration::from_micros(u64::try_from(now.saturating_sub(expected)).unwrap_or(0));
        if ahead > slack {
            let hold = self.retention.min(HOLD_MAX);
            self.held_until = Some(at + hold);
            return Trust::Jumped { ahead, hold };
        }
        if self.held_until.is_some_and(|until| at < until) { Trust::Held } else { Trust::Believed }
    }
}

pub(super) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const START: i64 = 1_800_000_000_000_000;

    fn after(hours: u32) -> i64 {
        START + microseconds(HOUR * hours)
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_not_believed_for_as_long_as_rows_are_kept() {
        let mut guard = ClockGuard::new(HOUR * 10);
        let began = Instant::now();
        assert_eq!(guard.look(began, START, Some(START)), Trust::Believed);
        assert_eq!(guard.look(began + HOUR, after(2), None), Trust::Believed, "a tenth of retention is no jump");
        let jumped = Trust::Jumped { ahead: HOUR * 1_000, hold: HOUR * 10 };
        assert_eq!(guard.look(began + HOUR * 2, after(1_003), Some(after(1_003))), jumped);
        assert_eq!(guard.look(began + HOUR * 11, after(1_012), None), Trust::Held);
        assert_eq!(guard.look(began + HOUR * 12, after(1_013), None), Trust::Believed);
        assert_eq!(guard.look(began + HOUR * 13, after(13), None), Trust::Believed, "back again: nothing is old");
    }

    #[test]
    fn the_first_look_does_not_believe_a_clock_by_which_everything_is_old() {
        let look = |retention, newest| ClockGuard::new(retention).look(Instant::now(), after(1_000), newest);
        assert_eq!(look(HOUR * 10, Some(after(990))), Trust::Believed);
        let jumped = Trust::Jumped { ahead: HOUR * 11, hold: HOUR * 10 };
        assert_eq!(look(HOUR * 10, Some(after(989))), jumped);
        assert_eq!(look(HOUR * 100, Some(START)), Trust::Jumped { ahead: HOUR * 1_000, hold: HOLD_MAX });
        assert_eq!(look(HOUR, None), Trust::Believed, "there is nothing to delete");
    }
}
