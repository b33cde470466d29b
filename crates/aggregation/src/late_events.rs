//! Logs the events that are in no result of an aggregate.

use std::fmt;

use aggregate::LeftOut;
use event::TypeName;
use text::counted;

/// One line for each reason. `of` is the type of the events, `name` that of the results.
pub(crate) fn log(of: &TypeName, name: &TypeName, left_out: LeftOut) {
    let LeftOut { late, lag, out_of_range } = left_out;
    if late > 0 {
        let (late, lag) = (counted(late, "event"), Lag(lag));
        tracing::warn!(
            aggregate = %name, "type" = %of,
            "{late} up to {lag} late: not in the results, but in the stores. Increase `lateness`, or send related \
             events over one connection (forebay load: --workers 1)"
        );
    }
    if out_of_range > 0 {
        let out_of_range = counted(out_of_range, "event");
        tracing::warn!(
            aggregate = %name, "type" = %of,
            "{out_of_range} with a time before 1970, or further in the future than `ahead` allows: not in the \
             results, but in the stores. Check the sender's clock and the `time` of the type"
        );
    }
}

/// A length of time in microseconds, in readable form.
struct Lag(i64);

impl fmt::Display for Lag {
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
    fn durations_are_rounded_up() {
        let said = |microseconds| Lag(microseconds).to_string();
        assert_eq!(said(1), "1 ms");
        assert_eq!(said(9_000_001), "10 s".to_owned());
        assert_eq!(said(61_000_000), "61 s");
        assert_eq!(said(601_000_000), "11 min");
        assert_eq!(said(90_000_000_000), "25 h");
        assert_eq!(said(i64::MAX), "106751992 days");
    }
}
