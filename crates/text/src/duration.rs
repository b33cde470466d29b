//! Lengths of time as written in configurations: `10s`, `1500ms`, `1h 30min`, `7d`.

use std::time::Duration;

/// The format of a length.
pub const WANTED: &str = "expected a number with a unit: us, ms, s, m or min, h, d, w";

/// Reads a length. Months and years have none: they are rejected, and so is `M`, which is easily written for minutes.
///
/// # Errors
/// The error, and the expected format.
pub fn parse(text: &str) -> Result<Duration, String> {
    let units = text.split(|character: char| !character.is_alphabetic()).filter(|unit| !unit.is_empty());
    for unit in units {
        if matches!(unit, "M" | "month" | "months" | "y" | "yr" | "yrs" | "year" | "years") {
            return Err(format!("`{unit}`: months and years aren't all of one length; {WANTED}"));
        }
    }
    humantime::parse_duration(text).map_err(|_| WANTED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_with_a_length_are_read() {
        for (text, seconds) in
            [("1m", 60.0), ("1h 30min", 5400.0), ("1500ms", 1.5), ("2w", 1_209_600.0), ("1.5h", 5400.0)]
        {
            assert_eq!(parse(text).map(|length| length.as_secs_f64()), Ok(seconds), "{text}");
        }
        for text in ["1M", "1month", "2y", "1 year"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("aren't all of one length"), "{text}: {error}");
        }
        assert!(parse("10").unwrap_err().ends_with(WANTED));
    }
}
