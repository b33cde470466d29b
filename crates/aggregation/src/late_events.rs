//! Logs the events that are in no result of an aggregate.

use std::fmt;

use aggregate::LeftOut;
use event::TypeName;
use text::counted;

/// One line for each reason. `of` is the type of the events, `name` that of the results.
pub(crate) fn log(of: &TypeName, name: &TypeName, left_out: LeftOut) {
    let LeftOut { late, behind, misdated } = left_out;
    if late > 0 {
        let (late, behind) = (counted(late, "event"), Behind(behind));
        tracing::warn!(
            aggregate = %name, "type" = %of,
            "{late} up to {behind} behind the newest: too late for the results, though in the stores. Set a longer `lateness`, or send \
             events that belong together by one connection (forebay load: --workers 1)"
        );
    }
    if misdated > 0 {
        let misdated = counted(misdated, "event");
        tracing::warn!(
            aggregate = %name, "type" = %of,
            "{misdated} dated further ahead than `ahead` allows, or before 1970: missing in the results, though in the stores. Check the \
             sender's clock and the `time` of the type"
        );
    }
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
