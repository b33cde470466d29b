//! Times as people write them: `10s`, `1500ms`, `2min`.

use std::time::Duration;

use event::length;

use super::reader::Wrong;

/// Reads a number with a unit, of at least `min` and at most `max`.
pub(super) fn within(text: &str, min: Duration, max: Duration) -> Result<Duration, Wrong> {
    let duration =
        length::parse(text).map_err(|why| Wrong::new("is not a time", why).help("for example 10s, 1500ms or 2min"))?;
    if (min..=max).contains(&duration) {
        return Ok(duration);
    }
    let (min, max) = (humantime::format_duration(min), humantime::format_duration(max));
    Err(Wrong::new("is out of range", format!("wanted {min} to {max}")))
}
