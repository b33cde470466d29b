//! The wall clock, and a throttle by a given time.
//!
//! The wall clock can jump: use it for displayed times and for ages, never for an order.
//!
//! All code reads the wall clock here. A clock that is far off (before 1970, or beyond the year 9999) gives the nearest
//! time that every format and protocol can express. So no later code can fail on such a time.

mod throttle;

use std::time::{Duration, SystemTime};

pub use throttle::Throttle;

/// The last microsecond of the year 9999: HTTP and RFC 3339 can express no later time.
const LAST: Duration = Duration::from_micros(253_402_300_800_000_000 - 1);

/// The operating system's time, between 1970 and the end of the year 9999.
#[must_use]
pub fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + since_1970()
}

/// The time since 1970, UTC, up to the end of the year 9999.
#[must_use]
pub fn since_1970() -> Duration {
    within(SystemTime::now())
}

/// Microseconds since 1970, UTC.
#[must_use]
pub fn unix_microseconds() -> i64 {
    i64::try_from(since_1970().as_micros()).unwrap_or(i64::MAX)
}

/// Whether the operating system's clock is before 1970: code of other crates may panic then.
#[must_use]
pub fn is_before_1970() -> bool {
    SystemTime::now() < SystemTime::UNIX_EPOCH
}

fn within(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_far_off_gives_the_nearest_valid_time() {
        let year = Duration::from_secs(366 * 86_400);
        assert_eq!(within(SystemTime::UNIX_EPOCH - year), Duration::ZERO);
        assert_eq!(within(SystemTime::UNIX_EPOCH + year), year);
        assert_eq!(within(SystemTime::UNIX_EPOCH + year * 9000), LAST);
        assert!(!is_before_1970() && unix_microseconds() > 0);
    }
}
