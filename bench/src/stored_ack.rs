//! `Forebay-Ack: stored` into the null sink, against `disk` on the same server: the cost of waiting for a store.

use anyhow::Result;

use crate::Setup;
use harness::report::{Bar, Row};
use harness::wrk::{self, WrkLoad};

/// The types differ in their acknowledgement only.
const CONFIG: &str = "[sinks.null]\nkind = \"null\"\n[types.disk]\nroutes = [\"null\"]\n\
                      [types.stored]\nroutes = [\"null\"]\nack = \"stored\"\n";
const CONNECTIONS: u32 = 256;

/// Loads one server alternately. The first round, in which files grow, isn't counted.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(Some(CONFIG))?;
    let server = launch.ready()?;
    let load = WrkLoad { connections: CONNECTIONS, duration: setup.duration, is_keyed: false };
    let rate = |name: &str| -> Result<f64> {
        let url = format!("http://{}/ingest/event/{name}", launch.intake);
        let report = wrk::run_on(&url, load, &setup.folder)?;
        server.wait_stored()?;
        Ok(report.requests_per_second)
    };
    let mut rates = Vec::new();
    for round in 0..=setup.rounds {
        let (stored, disk) = (rate("stored")?, rate("disk")?);
        println!("round {round}: stored {stored:.0}/s, disk {disk:.0}/s");
        if round > 0 {
            rates.push((stored, disk));
        }
    }
    server.stop()?;
    let what = format!("ack stored against disk, null, {CONNECTIONS} connections");
    Ok(vec![Row::alternating(&what, "requests/s", &rates, Bar::AtLeast(0.8))])
}
