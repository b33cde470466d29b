//! When an event happened, as it says itself.

use std::borrow::Cow;

use event::rfc3339;
use serde::Deserialize;

use crate::pointer::JsonPointer;

/// The time at `at` in a payload: microseconds since 1970, UTC. `None` where nothing stands there, or no time of RFC 3339.
#[must_use]
pub fn event_time(at: &JsonPointer, payload: &str) -> Option<i64> {
    /// A text of JSON; without escapes it isn't copied.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Text(text) = serde_json::from_str(at.lookup(payload)?).ok()?;
    rfc3339::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_text_of_rfc_3339() {
        let time = |payload| event_time(&"/at".parse().unwrap(), payload);
        assert_eq!(time(r#"{"at": "1970-01-01T00:00:01Z"}"#), Some(1_000_000));
        assert_eq!(time(r#"{"at": "1970-01-01T01:00:00\u002b01:00"}"#), Some(0));
        for none in [r#"{"at": 1}"#, r#"{"at": "yesterday"}"#, r#"{"at": null}"#, "{}", "7"] {
            assert_eq!(time(none), None, "{none}");
        }
    }
}
