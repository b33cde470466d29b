//! Waiting for a condition, with a limit.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const POLL: Duration = Duration::from_millis(5);

/// Waits until a condition holds. Fails if it doesn't within `limit`.
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > limit {
            bail!("waited {limit:?} until {what}");
        }
        thread::sleep(POLL);
    }
    Ok(())
}
