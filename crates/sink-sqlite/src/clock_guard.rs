//! Checks whether the clock is trustworthy when rows are deleted by age: a wrong clock would delete rows permanently.

use std::time::{Duration, Instant};

/// The time for the operator to correct a wrong clock, or the retention if that is shorter.
const HOLD_MAX: Duration = Duration::from_hours(24);

/// Compares the wall clock with the elapsed time.
pub(super) struct ClockGuard {
    retention: Duration,
    /// The last check: the monotonic time, and the wall clock.
    seen: Option<(Instant, i64)>,
    held_until: Option<Instant>,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Rows may be deleted.
    Trusted,
    /// The clock has jumped before, and the operator still has time to correct it.
    Held,
    /// The clock is ahead by this much. Nothing may be deleted for this long.
    Jumped { ahead: Duration, hold: Duration },
}

impl ClockGuard {
    pub(super) const fn new(retention: Duration) -> Self {
        Self { retention, seen: None, held_until: None }
    }

    /// Checks the wall clock. It is ahead if it advanced by more than the elapsed time and a tenth of the retention.
    /// The first check has only the newest row: the clock is ahead if it makes even that one too old.
    pub(super) fn check(&mut self, at: Instant, now: i64, newest: Option<i64>) -> Trust {
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
        if self.held_until.is_some_and(|until| at < until) { Trust::Held } else { Trust::Trusted }
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
    fn clock_that_jumps_ahead_is_not_trusted() {
        let mut guard = ClockGuard::new(HOUR * 10);
        let began = Instant::now();
        assert_eq!(guard.check(began, START, Some(START)), Trust::Trusted);
        assert_eq!(guard.check(began + HOUR, after(2), None), Trust::Trusted, "a tenth of the retention isn't a jump");
        let jumped = Trust::Jumped { ahead: HOUR * 1_000, hold: HOUR * 10 };
        assert_eq!(guard.check(began + HOUR * 2, after(1_003), Some(after(1_003))), jumped);
        assert_eq!(guard.check(began + HOUR * 11, after(1_012), None), Trust::Held);
        assert_eq!(guard.check(began + HOUR * 12, after(1_013), None), Trust::Trusted);
        assert_eq!(guard.check(began + HOUR * 13, after(13), None), Trust::Trusted, "back again: nothing is old");
    }

    #[test]
    fn first_check_rejects_a_clock_past_all_rows() {
        let check = |retention, newest| ClockGuard::new(retention).check(Instant::now(), after(1_000), newest);
        assert_eq!(check(HOUR * 10, Some(after(990))), Trust::Trusted);
        let jumped = Trust::Jumped { ahead: HOUR * 11, hold: HOUR * 10 };
        assert_eq!(check(HOUR * 10, Some(after(989))), jumped);
        assert_eq!(check(HOUR * 100, Some(START)), Trust::Jumped { ahead: HOUR * 1_000, hold: HOLD_MAX });
        assert_eq!(check(HOUR, None), Trust::Trusted, "there is nothing to delete");
    }
}
