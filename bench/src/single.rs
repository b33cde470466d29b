//! One event a POST: the server and the ceiling of durable HTTP intake alternately.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::Setup;
use harness::metrics;
use harness::report::{Bar, Row, median};
use harness::server::{NULL_SINK, READY_LIMIT};
use harness::server::{Process, Server};
use harness::wait::until;
use harness::workspace;
use harness::wrk::{self, WrkLoad};
use testkit::ports::free_address;

/// The results of one load.
struct Measured {
    requests_per_second: f64,
    /// User and system microseconds of a request, all that follows from it included.
    cpu: f64,
}

/// A round: the ceiling, and the server right after it.
struct Round {
    reference: Measured,
    server: Measured,
    /// Share of the accepted events that wasn't stored yet when the load ended.
    pending: f64,
}

/// How long each load of a round lasts: so short that the machine is about as fast for both.
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS_MIN: u64 = 3;

pub(super) fn into_null(setup: &Setup) -> Result<Vec<Row>> {
    let many = alternating(setup, 256, Some(NULL_SINK), false)?;
    let one = alternating(setup, 1, Some(NULL_SINK), false)?;
    let cpu: Vec<_> = many.iter().map(|round| (round.server.cpu, round.reference.cpu)).collect();
    Ok(vec![
        rate_row("null, 256 connections", &many, 0.75),
        Row::alternating("null, 256 connections, CPU", "µs/request", &cpu, Bar::AtMost(1.6)),
        rate_row("null, 1 connection", &one, 0.75),
    ])
}

pub(super) fn into_sqlite(setup: &Setup) -> Result<Vec<Row>> {
    let rounds = alternating(setup, 256, None, false)?;
    let pending = Row::alone(
        "SQLite, pending of accepted when the load ends",
        "",
        median(rounds.iter().map(|round| round.pending).collect()),
        Bar::AtMost(0.2),
    );
    Ok(vec![rate_row("SQLite, 256 connections", &rounds, 0.5), pending])
}

/// Each request with another key: the load generator works more for each, for the ceiling as for the server.
pub(super) fn keyed(setup: &Setup) -> Result<Vec<Row>> {
    let rounds = alternating(setup, 256, Some(NULL_SINK), true)?;
    Ok(vec![rate_row("null, 256 connections, a key for each request", &rounds, 0.65)])
}

fn rate_row(what: &str, rounds: &[Round], least: f64) -> Row {
    let rates = |round: &Round| (round.server.requests_per_second, round.reference.requests_per_second);
    Row::alternating(what, "requests/s", &rounds.iter().map(rates).collect::<Vec<_>>(), Bar::AtLeast(least))
}

/// Both run all the time, and are loaded alternately. The first round, in which files grow, isn't counted.
fn alternating(setup: &Setup, connections: u32, config: Option<&str>, is_keyed: bool) -> Result<Vec<Round>> {
    let rounds = (u64::from(setup.rounds) * setup.duration.as_secs()).div_ceil(ROUND.as_secs()).max(ROUNDS_MIN);
    let load = WrkLoad { connections, duration: ROUND, is_keyed };
    let (address, reference) = start_reference(setup)?;
    let launch = setup.fresh_server(config)?;
    let server = launch.ready()?;
    let mut measured = Vec::new();
    for round in 0..=rounds {
        let reference = measure_reference(setup, load, address, &reference)?;
        let (server, pending) = measure_server(setup, load, launch.intake, &server)?;
        let figures =
            |Measured { requests_per_second, cpu }: &Measured| format!("{requests_per_second:.0}/s, {cpu:.1} µs CPU");
        println!(
            "{connections} connections, round {round}: ceiling {}; server {}",
            figures(&reference),
            figures(&server)
        );
        if round > 0 {
            measured.push(Round { reference, server, pending });
        }
    }
    server.stop()?;
    Ok(measured)
}

fn start_reference(setup: &Setup) -> Result<(SocketAddr, Process)> {
    let folder = setup.folder.join("reference");
    workspace::empty_directory(&folder)?;
    let address = free_address();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["reference", "http-durable", "--port", &address.port().to_string(), "--directory"]).arg(&folder);
    let process = Process::start(&mut command)?;
    until("the reference loop listens", READY_LIMIT, || Ok(TcpStream::connect(address).is_ok()))?;
    Ok((address, process))
}

fn measure_reference(setup: &Setup, load: WrkLoad, address: SocketAddr, process: &Process) -> Result<Measured> {
    let before = process.cpu()?;
    let report = wrk::run(address, load, &setup.folder)?;
    let cpu = cpu_per_request(process.cpu()? - before, report);
    Ok(Measured { requests_per_second: report.requests_per_second, cpu })
}

fn measure_server(setup: &Setup, load: WrkLoad, intake: SocketAddr, server: &Server) -> Result<(Measured, f64)> {
    const ACCEPTED: &str = "forebay_events_accepted_total";
    let accepted_before = metrics::sum(&server.metrics()?, ACCEPTED);
    let before = server.process.cpu()?;
    let report = wrk::run(intake, load, &setup.folder)?;
    let text = server.metrics()?;
    let accepted = metrics::sum(&text, ACCEPTED) - accepted_before;
    let pending = metrics::sum(&text, "forebay_events_pending") / accepted;
    if !is_accepted_figure_plausible(accepted, report.requests) {
        bail!("wrk counted {} answers, but the server accepted {accepted} events", report.requests);
    }
    server.wait_stored()?;
    let cpu = cpu_per_request(server.process.cpu()? - before, report);
    Ok((Measured { requests_per_second: report.requests_per_second, cpu }, pending))
}

/// wrk doesn't count the requests in flight when its time is over, the server does.
fn is_accepted_figure_plausible(accepted: f64, requests: u64) -> bool {
    let requests = requests as f64;
    accepted >= requests && accepted <= requests * 1.05 + 1_000.0
}

fn cpu_per_request(cpu: Duration, report: wrk::WrkReport) -> f64 {
    cpu.as_secs_f64() * 1e6 / report.requests as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_answers_without_accepting_is_noticed() {
        assert!(is_accepted_figure_plausible(100_256.0, 100_000));
        assert!(!is_accepted_figure_plausible(99_999.0, 100_000));
        assert!(!is_accepted_figure_plausible(0.0, 100_000));
        assert!(!is_accepted_figure_plausible(200_000.0, 100_000));
    }
}
