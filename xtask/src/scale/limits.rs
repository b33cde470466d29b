//! One CPU and 512 MB: durable POSTs and `GET /ip` from a container, against the reference loops under the same limits.

use std::time::Duration;

use anyhow::{Result, bail};

use super::Setup;
use super::container::Site;
use crate::report::{Bar, Row};
use crate::server::NULL_SINK;
use crate::workspace;
use crate::wrk::{self, WrkLoad};

const LIMITS: &[&str] = &["--cpus", "1", "--memory", "512m", "--memory-swap", "512m"];
const LOAD: Duration = Duration::from_secs(3);
const CONNECTIONS: u32 = 256;

/// Loads the server and the loops alternately.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let site = Site::start(&setup.binary)?;
    let folder = site.folder(&setup.folder, "data")?;
    let server = site.serve("server", &folder, NULL_SINK, LIMITS)?;
    let ceiling_folder = setup.folder.join("ceiling");
    workspace::empty_directory(&ceiling_folder)?;
    let durable = site.reference("durable", Some(&ceiling_folder), LIMITS)?;
    let plain = site.reference("plain", None, LIMITS)?;

    let load = WrkLoad { connections: CONNECTIONS, duration: LOAD, is_keyed: false };
    let post = |address| Ok::<_, anyhow::Error>(wrk::run(address, load, &setup.folder)?.requests_per_second);
    let get = |address: std::net::SocketAddr| {
        Ok::<_, anyhow::Error>(wrk::get(&format!("http://{address}/ip"), CONNECTIONS, LOAD)?.requests_per_second)
    };
    let (mut posts, mut gets) = (Vec::new(), Vec::new());
    // The first round, in which files grow, doesn't count.
    for round in 0..=setup.rounds {
        let posted = (post(server.address)?, post(durable.address)?);
        let got = (get(server.address)?, get(plain.address)?);
        println!(
            "round {round}: POST {:.0} of {:.0}, GET /ip {:.0} of {:.0} a second",
            posted.0, posted.1, got.0, got.1
        );
        if round > 0 {
            posts.push(posted);
            gets.push(got);
        }
    }
    let killed = server.inspect(&site.docker, "{{.State.OOMKilled}} {{.RestartCount}} {{.State.Running}}")?;
    if killed != "false 0 true" {
        bail!("the container was killed, or has started again: {killed}");
    }
    let absolute =
        |row: &Row, least| Row::alone(&format!("{}: rate", row.what), "requests/s", row.measured, Bar::AtLeast(least));
    let posted = Row::alternating("1 CPU, 512 MB: durable POST", "requests/s", &posts, Bar::AtLeast(0.75));
    let got = Row::alternating("1 CPU, 512 MB: GET /ip", "requests/s", &gets, Bar::AtLeast(0.8));
    Ok(vec![absolute(&posted, 40_000.0), posted, absolute(&got, 50_000.0), got])
}
