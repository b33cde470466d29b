//! The server's own account of its events, by its metrics.

use anyhow::{Result, bail};

use crate::metrics;
use crate::server::Server;

const ACCEPTED: &str = "forebay_events_accepted_total";
const STORED: &str = "forebay_events_stored_total";

/// Fails unless each metric has this sum.
pub(super) fn expect(server: &Server, wanted: &[(&str, f64)]) -> Result<()> {
    check(&server.metrics()?, wanted)
}

fn check(text: &str, wanted: &[(&str, f64)]) -> Result<()> {
    for (name, wanted) in wanted {
        let found = metrics::sum(text, name);
        if !metrics::has(text, name) || (found - wanted).abs() > 0.5 {
            bail!("{name} is {found} instead of {wanted}");
        }
    }
    Ok(())
}

/// Each of `events` was accepted once, and stored once in each of so many stores.
pub(super) fn expect_stored(server: &Server, events: f64, stores: usize) -> Result<()> {
    let of_faults = ["forebay_events_dead_total", "forebay_events_skipped_total", "forebay_ledger_errors_total"];
    expect(server, &[(ACCEPTED, events), (STORED, events * stores as f64), ("forebay_events_pending", 0.0)])?;
    expect(server, &of_faults.map(|name| (name, 0.0)))
}

/// The number of accepted events.
pub(super) fn accepted(server: &Server) -> Result<f64> {
    Ok(metrics::sum(&server.metrics()?, ACCEPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_must_be_equal_and_exist() {
        let text = format!("{ACCEPTED}{{type=\"a\"}} 2\n{ACCEPTED}{{type=\"b\"}} 3\n{STORED} 4\n");
        assert!(check(&text, &[(ACCEPTED, 5.0), (STORED, 4.0)]).is_ok());
        assert!(check(&text, &[(STORED, 5.0)]).is_err());
        assert!(check(&text, &[("forebay_events_dead_total", 0.0)]).is_err());
    }
}
