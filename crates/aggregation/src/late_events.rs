//! What a person is told of events that are in no result of an aggregate.

use std::fmt;

use aggregate::LeftOut;
use event::{TypeName, counted};

/// The messages, one for each reason. `of` is the type of the events, `name` that of the results.
pub(crate) fn messages(of: &TypeName, name: &TypeName, left_out: LeftOut) -> Vec<String> {
    let LeftOut { late, behind, misdated } = left_out;
    let mut messages = Vec::new();
    if late > 0 {
        messages.push(format!(
            "aggregate {name}: {} of type {of} came too late, up to {} behind the newest, missing in its results, though not in the \
             stores: give it a longer `lateness`, or send what belongs together by one connection (forebay load: \
             --workers 1)",
            counted(late, "event"),
            Behind(behind)
        ));
    }
    if misdated > 0 {
        messages.push(format!(
            "aggregate {name}: {} of type {of} dated further ahead than its `ahead` allows, or before 1970, missing in its \
             results, though not in the stores: look at the sender's clock and at the `time` of the type",
            counted(misdated, "event")
        ));
    }
    messages
}

/// A length of time in microseconds, as a person reads it.
struct Behind(i64);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.max(0).unsigned_abs().div_ceil(1_000);
        let seconds = milliseconds.div_ceil(1_000);
        match seconds {
            0..10 => write!(f, "{milliseconds} ms"),
            10..600 => write!(f, "{seconds} s"),
            600..36_000 => write!(f, "{} min", seconds.div_ceil(60)),
            36_000..864_000 => write!(f, "{} h", seconds.div_ceil(3_600)),
            _ => write!(f, "{} days", seconds.div_ceil(86_400)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_never_said_shorter_than_they_are() {
        let said = |microseconds| Behind(microseconds).to_string();
        assert_eq!(said(1), "1 ms");
        assert_eq!(said(9_000_001), "10 s".to_owned());
        assert_eq!(said(61_000_000), "61 s");
        assert_eq!(said(601_000_000), "11 min");
        assert_eq!(said(90_000_000_000), "25 h");
        assert_eq!(said(i64::MAX), "106751992 days");
    }
}
