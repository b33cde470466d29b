//! Waiting for a condition, with a limit.

use std::time::{Duration, Instant};

/// A server that takes longer hangs.
pub const PATIENCE: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits until a condition holds.
///
/// # Panics
/// If it doesn't after a minute. The message names the condition.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it isn't so after {PATIENCE:?}: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}
