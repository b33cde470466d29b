//! 1, 2, 4 and 8 gateways and writers: directly, through HAProxy, through nginx, and with the gateway's own balancing. These are the tables of
//! the articles, on one machine.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Setup;
use super::balancer::Program;
use super::table::Table;
use crate::clients::with_clients;
use crate::http::{self, Connection};
use crate::metrics;
use crate::report::{Bar, Row, median};
use crate::server::NULL_SINK;
use crate::server::{Launch, ProcessRole, Server};
use crate::wait::until;
use crate::workspace;
use crate::wrk::{self, WrkLoad};

const COUNTS: [usize; 4] = [1, 2, 4, 8];
const WRITERS_MAX: usize = 8;
/// All connections of the load.
const CONNECTIONS: u32 = 64;
const LOAD: Duration = Duration::from_secs(2);
/// Events of one measurement after a gateway: several seconds of delivery.
const EVENTS: usize = 1 << 20;
const EVENTS_OF_BATCH: usize = 8192;
const CLIENTS: u32 = 4;
/// The number of batches after which the shares of eight writers are compared.
const BATCHES: f64 = 10_000.0;
const BATCHES_LIMIT: Duration = Duration::from_secs(120);
/// The least share of a writer, in shares of the mean.
const FAIR: f64 = 0.5;
/// The least rate of the gateway's own balancing with any number of writers, in shares of the rate with one writer.
const OWN_LEAST: f64 = 0.95;

const OF_WRITER: &str = "[sinks.none]\nkind = \"null\"\n";

/// How a gateway spreads its batches over writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Lane,
    Batch,
    Through(Program),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lane => f.write_str("own, by lane"),
            Self::Batch => f.write_str("own, by batch"),
            Self::Through(program) => f.write_str(program.name()),
        }
    }
}

/// Measures both tables. Returns the figures that have a bar.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    gateways(setup)?;
    let mut rows = writers(setup)?;
    rows.push(spread(setup)?);
    Ok(rows)
}

/// Starts `count` processes of a role with the same configuration.
fn start(setup: &Setup, role: ProcessRole, count: usize, config: &str) -> Result<Vec<(Launch, Server)>> {
    let one = |number| {
        let folder = setup.folder.join(format!("{}-{number}", role.subcommand()));
        let launch = Launch::fresh(role, &setup.binary, &folder, config)?;
        let server = launch.ready()?;
        Ok((launch, server))
    };
    (0..count).map(one).collect()
}

/// Requests a second into gateways.
fn gateways(setup: &Setup) -> Result<()> {
    let ways = ["direct", Program::HaProxy.name(), Program::Nginx.name()];
    let mut table = Table::new("durable POSTs a second by wrk, 64 connections, into gateways (null sink)", &ways);
    for count in COUNTS {
        let gateways = start(setup, ProcessRole::Serve, count, NULL_SINK)?;
        let addresses: Vec<SocketAddr> = gateways.iter().map(|(launch, _)| launch.intake).collect();
        let mut cells = vec![setup.median(|| directly(setup, &addresses))?];
        for program in Program::ALL {
            let balancer = program.start(&addresses, &setup.folder)?;
            cells.push(setup.median(|| load(setup, balancer.address, CONNECTIONS, 0))?);
        }
        table.row(&format!("{count} gateways"), &cells);
        gateways.into_iter().try_for_each(|(_, server)| server.stop())?;
    }
    table.print();
    Ok(())
}

/// Loads all gateways at the same time, each with its share of the connections.
fn directly(setup: &Setup, addresses: &[SocketAddr]) -> Result<f64> {
    let count = u32::try_from(addresses.len())?;
    let client = |number: u32| load(setup, addresses[number as usize], CONNECTIONS / count, number);
    Ok(with_clients(count, client, || Ok(()), || {})?.0.iter().sum())
}

fn load(setup: &Setup, address: SocketAddr, connections: u32, number: u32) -> Result<f64> {
    let folder = setup.folder.join(format!("load-{number}"));
    workspace::empty_directory(&folder)?;
    Ok(wrk::run(address, WrkLoad { connections, duration: LOAD, is_keyed: false }, &folder)?.requests_per_second)
}

/// Events a second through one gateway into writers.
fn writers(setup: &Setup) -> Result<Vec<Row>> {
    let ways = [Way::Lane, Way::Batch, Way::Through(Program::HaProxy), Way::Through(Program::Nginx)];
    let names: Vec<String> = ways.iter().map(ToString::to_string).collect();
    let title = "events a second, accepted in batches and delivered through one gateway, into writers (null sink)";
    let mut table = Table::new(title, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let writers = start(setup, ProcessRole::Writer, WRITERS_MAX, OF_WRITER)?;
    let all: Vec<SocketAddr> = writers.iter().map(|(launch, _)| launch.intake).collect();
    let mut rows = Vec::new();
    for count in COUNTS {
        let mut cells = Vec::new();
        for way in ways {
            let one = || through(setup, Way::Lane, &all[..1]);
            let rounds: Result<Vec<_>> =
                (0..setup.rounds).map(|_| Ok((through(setup, way, &all[..count])?, one()?))).collect();
            let rounds = rounds?;
            cells.push(median(rounds.iter().map(|round| round.0).collect()));
            if !matches!(way, Way::Through(_)) {
                let what = format!("{count} writers, {way}, against one writer");
                rows.push(Row::alternating(&what, "events/s", &rounds, Bar::AtLeast(OWN_LEAST)));
            }
        }
        table.row(&format!("{count} writers"), &cells);
    }
    table.print();
    writers.into_iter().try_for_each(|(_, server)| server.stop())?;
    Ok(rows)
}

fn config(way: Way, servers: &[SocketAddr], shards: u32) -> String {
    let spread = if way == Way::Batch { "batch" } else { "lane" };
    let servers: Vec<String> = servers.iter().map(|server| format!("http://{server}")).collect();
    format!(
        "[gateway]\nshards = {shards}\n\n[upstreams.back]\nservers = {servers:?}\nspread = \"{spread}\"\n\n[types.\"*\"]\n\
         routes = [\"none\"]\n\n[sinks.none]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"null\"\n"
    )
}

/// Posts all events and waits until they are delivered. Returns the rate in events a second.
fn through(setup: &Setup, way: Way, writers: &[SocketAddr]) -> Result<f64> {
    let balancer = match way {
        Way::Through(program) => Some(program.start(writers, &setup.folder)?),
        Way::Lane | Way::Batch => None,
    };
    let reached = balancer.as_ref().map_or_else(|| writers.to_vec(), |balancer| vec![balancer.address]);
    // Two lanes would use no more than two writers.
    let mut gateways = start(setup, ProcessRole::Gateway, 1, &config(way, &reached, 8))?;
    let Some((launch, gateway)) = gateways.pop() else { bail!("no gateway") };
    let begun = Instant::now();
    post(launch.intake)?;
    gateway.wait_stored()?;
    let rate = EVENTS as f64 / begun.elapsed().as_secs_f64();
    gateway.stop()?;
    Ok(rate)
}

fn post(gateway: SocketAddr) -> Result<()> {
    let body = format!("{}\n", wrk::BODY).repeat(EVENTS_OF_BATCH);
    let request = http::post("/ingest/batch", &["Content-Type: application/x-ndjson"], body.as_bytes());
    let client = |_| -> Result<()> {
        let mut connection = Connection::open(gateway)?;
        for _ in 0..EVENTS / EVENTS_OF_BATCH / CLIENTS as usize {
            let answer = connection.send(&request)?;
            if answer.status != 200 {
                bail!("a batch was answered {}", answer.status);
            }
        }
        Ok(())
    };
    with_clients(CLIENTS, client, || Ok(()), || {}).map(drop)
}

/// How evenly `spread = "batch"` uses eight writers: the least share of a writer, in shares of the mean.
fn spread(setup: &Setup) -> Result<Row> {
    let writers = start(setup, ProcessRole::Writer, WRITERS_MAX, OF_WRITER)?;
    let addresses: Vec<SocketAddr> = writers.iter().map(|(launch, _)| launch.intake).collect();
    let mut gateways = start(setup, ProcessRole::Gateway, 1, &config(Way::Batch, &addresses, 32))?;
    let Some((launch, gateway)) = gateways.pop() else { bail!("no gateway") };
    let batches = || -> Result<Vec<f64>> {
        writers.iter().map(|(_, one)| Ok(metrics::sum(&one.metrics()?, "forebay_writer_batches_total"))).collect()
    };
    let mut found = batches()?;
    until("all batches are delivered", BATCHES_LIMIT, || {
        load(setup, launch.intake, CONNECTIONS, 0)?;
        found = batches()?;
        Ok(found.iter().sum::<f64>() >= BATCHES)
    })?;
    gateway.wait_stored()?;
    let total: f64 = found.iter().sum();
    println!("{total} batches by `spread = \"batch\"` over {WRITERS_MAX} writers: {found:?}");
    let least = found.iter().copied().fold(f64::INFINITY, f64::min) / (total / WRITERS_MAX as f64);
    gateway.stop()?;
    writers.into_iter().try_for_each(|(_, server)| server.stop())?;
    Ok(Row::alone("the writer with the fewest of 10,000 batches, in shares of the mean", "", least, Bar::AtLeast(FAIR)))
}
