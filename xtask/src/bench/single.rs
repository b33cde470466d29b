//! One event a POST: the server and the ceiling of durable HTTP intake in turn.

use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::report::{Bar, Row, median};
use super::{NULL_SINK, READY_LIMIT, Setup};
use crate::metrics;
use crate::server::{self, Process};
use crate::workspace;
use crate::wrk::{self, Load};

/// What one load showed.
struct Measured {
    requests_per_second: f64,
    /// User and system microseconds of a request, all that follows from it included.
    cpu: f64,
    /// Share of the accepted events that wasn't stored yet when the load ended.
    pending: f64,
}

/// Medians over the rounds.
struct Medians {
    server: Measured,
    reference: Measured,
}

pub(super) fn into_null(setup: &Setup) -> Result<Vec<Row>> {
    let many = in_turn(setup, 256, Some(NULL_SINK))?;
    let one = in_turn(setup, 1, Some(NULL_SINK))?;
    Ok(vec![
        rate_row("null, 256 connections", &many, 0.75),
        Row {
            what: "null, 256 connections, CPU".into(),
            measured: many.server.cpu,
            unit: "µs/request",
            reference: Some(many.reference.cpu),
            bar: Bar::AtMost(1.6),
        },
        rate_row("null, 1 connection", &one, 0.75),
    ])
}

pub(super) fn into_sqlite(setup: &Setup) -> Result<Vec<Row>> {
    let medians = in_turn(setup, 256, None)?;
    let pending = Row {
        what: "SQLite, pending of accepted when the load ends".into(),
        measured: medians.server.pending,
        unit: "",
        reference: None,
        bar: Bar::AtMost(0.2),
    };
    Ok(vec![rate_row("SQLite, 256 connections", &medians, 0.5), pending])
}

fn rate_row(what: &str, medians: &Medians, least: f64) -> Row {
    Row {
        what: what.to_owned(),
        measured: medians.server.requests_per_second,
        unit: "requests/s",
        reference: Some(medians.reference.requests_per_second),
        bar: Bar::AtLeast(least),
    }
}

fn in_turn(setup: &Setup, connections: u32, config: Option<&str>) -> Result<Medians> {
    let load = Load { connections, duration: setup.duration };
    let mut references = Vec::new();
    let mut servers = Vec::new();
    for round in 1..=setup.rounds {
        references.push(measure_reference(setup, load)?);
        servers.push(measure_server(setup, load, config)?);
        for (name, all) in [("reference", &references), ("server", &servers)] {
            if let Some(last) = all.last() {
                let Measured { requests_per_second, cpu, .. } = last;
                println!(
                    "{connections} connections, round {round}, {name}: {requests_per_second:.0}/s, {cpu:.1} µs CPU"
                );
            }
        }
    }
    Ok(Medians { server: medians(&servers), reference: medians(&references) })
}

fn medians(all: &[Measured]) -> Measured {
    let of = |figure: fn(&Measured) -> f64| median(all.iter().map(figure).collect());
    Measured { requests_per_second: of(|m| m.requests_per_second), cpu: of(|m| m.cpu), pending: of(|m| m.pending) }
}

fn measure_reference(setup: &Setup, load: Load) -> Result<Measured> {
    let folder = setup.folder.join("reference");
    workspace::empty_directory(&folder)?;
    let address = server::free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["reference", "http-durable", "--port", &address.port().to_string(), "--directory"]).arg(&folder);
    let process = Process::start(&mut command)?;
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > READY_LIMIT {
            bail!("the reference doesn't listen on {address}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = process.cpu()?;
    let report = wrk::run(address, load, &folder)?;
    let cpu = cpu_per_request(process.cpu()? - before, report);
    Ok(Measured { requests_per_second: report.requests_per_second, cpu, pending: 0.0 })
}

fn measure_server(setup: &Setup, load: Load, config: Option<&str>) -> Result<Measured> {
    let launch = setup.fresh_server(config)?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let before = server.process.cpu()?;
    let report = wrk::run(launch.intake, load, &setup.folder)?;
    let text = server.metrics()?;
    let accepted = metrics::sum(&text, "forebay_events_accepted_total");
    let pending = metrics::sum(&text, "forebay_events_pending") / accepted;
    if !is_accepted_figure_plausible(accepted, report.requests) {
        bail!("wrk counted {} answers, but the server accepted {accepted} events", report.requests);
    }
    server.wait_stored()?;
    let cpu = cpu_per_request(server.process.cpu()? - before, report);
    server.stop()?;
    Ok(Measured { requests_per_second: report.requests_per_second, cpu, pending })
}

/// wrk doesn't count the requests that are on their way when its time is over, the server does.
fn is_accepted_figure_plausible(accepted: f64, requests: u64) -> bool {
    let requests = requests as f64;
    accepted >= requests && accepted <= requests * 1.05 + 1_000.0
}

fn cpu_per_request(cpu: Duration, report: wrk::Report) -> f64 {
    cpu.as_secs_f64() * 1e6 / report.requests as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_without_accepting_is_noticed() {
        assert!(is_accepted_figure_plausible(100_256.0, 100_000));
        assert!(!is_accepted_figure_plausible(99_999.0, 100_000));
        assert!(!is_accepted_figure_plausible(0.0, 100_000));
        assert!(!is_accepted_figure_plausible(200_000.0, 100_000));
    }
}
