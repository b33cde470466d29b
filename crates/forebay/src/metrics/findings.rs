//! The findings of the last minute as a metric, which alerts use.

use super::exposition::Exposition;
use crate::findings::{CODES, Findings};

/// Adds 1 for each present finding, and 0 for the others.
pub(crate) fn add(text: &mut Exposition, findings: &Findings) {
    let found = findings.now();
    let help = "Whether this slowed the process down in the last minute: 1 or 0, by finding.";
    text.gauge("forebay_finding", help, |series| {
        for code in CODES {
            series.count(&[("finding", code)], found.iter().any(|finding| finding.code == code).into());
        }
    });
}
