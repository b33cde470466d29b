//! The wall clock, which can jump: for what people read and for ages, never for an order.

use std::time::SystemTime;

/// Microseconds since 1970, UTC.
#[must_use]
pub fn unix_microseconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
