//! Durations with units: `10s`, `1500ms`, `2min`.

use std::time::Duration;

use text::duration;

use crate::invalid_value::InvalidValue;

/// Reads a number with a unit, of at least `min` and at most `max`.
///
/// # Errors
/// It is none, or out of range.
pub fn within(text: &str, min: Duration, max: Duration) -> Result<Duration, InvalidValue> {
    let duration = duration::parse(text)
        .map_err(|why| InvalidValue::new("is not a time", why).help("for example 10s, 1500ms or 2min"))?;
    if (min..=max).contains(&duration) {
        return Ok(duration);
    }
    let (min, max) = (humantime::format_duration(min), humantime::format_duration(max));
    Err(InvalidValue::new("is out of range", format!("expected {min} to {max}")))
}
