//! The size of the binary, and how long it takes from nothing to ready.

use anyhow::Result;

use super::report::{Bar, Row, median};
use super::{READY_LIMIT, Setup};

const STARTS: u32 = 20;

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let mut server = setup.fresh_server(None)?.start()?;
        times.push(server.wait_ready(READY_LIMIT)?.as_secs_f64() * 1e3);
        server.stop()?;
    }
    let bytes = std::fs::metadata(&setup.binary)?.len();
    let row = |what: &str, measured, unit, most| Row {
        what: what.into(),
        measured,
        unit,
        reference: None,
        bar: Bar::AtMost(most),
    };
    Ok(vec![
        row("binary", bytes as f64 / 1e6, "MB", 12.0),
        row("ready with an empty directory, median of 20", median(times), "ms", 50.0),
    ])
}
