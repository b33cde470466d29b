//! A figure of a script, as a row of the table.

use serde::Deserialize;

use crate::report::{Bar, Row};

/// A figure. Either `rounds` has pairs of a figure and its reference, or `measured` is set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    what: String,
    #[serde(default)]
    unit: String,
    measured: Option<f64>,
    #[serde(default)]
    rounds: Vec<(f64, f64)>,
    at_most: Option<f64>,
    at_least: Option<f64>,
}

/// The units of a table.
const UNITS: [&str; 7] = ["ms", "s", "kB", "MB", "clicks", "requests/s", "events/s"];

impl Figure {
    /// The row of the table. A figure without a value misses every bar.
    pub(super) fn row(&self) -> Row {
        let unit = UNITS.into_iter().find(|unit| *unit == self.unit).unwrap_or_default();
        let bar = match (self.at_least, self.at_most) {
            (Some(least), _) => Bar::AtLeast(least),
            (None, most) => Bar::AtMost(most.unwrap_or(0.0)),
        };
        if self.rounds.is_empty() {
            return Row::alone(&self.what, unit, self.measured.unwrap_or(f64::NAN), bar);
        }
        Row::alternating(&self.what, unit, &self.rounds, bar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report;

    fn is_met(json: &str) -> bool {
        let figure: Figure = serde_json::from_str(json).unwrap();
        report::print(&[figure.row()]).is_ok()
    }

    #[test]
    fn figures_are_compared_with_their_bars() {
        assert!(is_met(r#"{"what": "size", "unit": "kB", "measured": 99.0, "at_most": 100.0}"#));
        assert!(!is_met(r#"{"what": "size", "unit": "kB", "measured": null, "at_most": 100.0}"#));
        assert!(is_met(r#"{"what": "rate", "rounds": [[98.0, 100.0]], "at_least": 0.97}"#));
        assert!(!is_met(r#"{"what": "rate", "rounds": [[96.0, 100.0]], "at_least": 0.97}"#));
        assert!(!is_met(r#"{"what": "failed checks", "measured": 1.0}"#));
    }
}
