//! NDJSON in batches of 1 MiB: the client threads, and the benchmark into the null sink.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::records::Records;
use crate::Setup;
use crate::reference::check_loop::{self, Piece};
use harness::http::{self, Connection};
use harness::metrics;
use harness::report::{Bar, Row, median};
use harness::server::NULL_SINK;

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// Connections that send batches side by side.
    #[arg(long, default_value_t = 4)]
    connections: u32,
}

pub(super) fn into_null(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let pieces = options.records.pieces()?;
    let batches = batches(&pieces);
    let mut rounds = Vec::new();
    for round in 1..=setup.rounds {
        let reference = check_loop::run(&pieces, &setup.folder, setup.duration)?;
        let server = measure_server(setup, &batches, options.connections)?;
        println!("round {round}: reference {reference:.0} events/s, server {server:.0} events/s");
        rounds.push((server, reference));
    }
    let rate = Row::alone(
        "batches into null",
        "events/s",
        median(rounds.iter().map(|round| round.0).collect()),
        Bar::AtLeast(600_000.0),
    );
    Ok(vec![rate, Row::alternating("batches into null, against check-loop", "events/s", &rounds, Bar::AtLeast(0.3))])
}

fn measure_server(setup: &Setup, batches: &[Batch], connections: u32) -> Result<f64> {
    let launch = setup.fresh_server(Some(NULL_SINK))?;
    let server = launch.ready()?;
    let sent = send(launch.intake, batches, connections, Until::Elapsed(setup.duration))?;
    server.wait_stored()?;
    let accepted = metrics::sum(&server.metrics()?, "forebay_events_accepted_total");
    server.stop()?;
    if (accepted - sent.events).abs() > 0.5 {
        bail!("{} events were answered with 200, but the server accepted {accepted}", sent.events);
    }
    Ok(sent.events / sent.elapsed.as_secs_f64())
}

/// A whole request, built beforehand: the client should use little of the machine's time.
pub(super) struct Batch {
    pub(super) request: Vec<u8>,
    pub(super) events: u64,
}

/// When to stop sending.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Elapsed(Duration),
    /// At least this many events.
    Sent(u64),
}

/// The events that were answered with 200.
pub(super) struct Sent {
    pub(super) events: f64,
    pub(super) elapsed: Duration,
}

/// The pieces as requests.
pub(super) fn batches(pieces: &[Piece]) -> Vec<Batch> {
    batches_to("/ingest/batch", pieces)
}

/// The pieces as requests whose events are all of one type.
pub(super) fn batches_of_type(of: &str, pieces: &[Piece]) -> Vec<Batch> {
    batches_to(&format!("/ingest/batch/{of}"), pieces)
}

fn batches_to(path: &str, pieces: &[Piece]) -> Vec<Batch> {
    let request = |piece: &Piece| http::post(path, &["Content-Type: application/x-ndjson"], &piece.bytes);
    pieces.iter().map(|piece| Batch { request: request(piece), events: piece.events }).collect()
}

/// Sends the batches again and again over some connections; any answer but 200 is an error.
pub(super) fn send(server: SocketAddr, batches: &[Batch], connections: u32, until: Until) -> Result<Sent> {
    let next = AtomicUsize::new(0);
    let claimed = AtomicU64::new(0);
    let begun = Instant::now();
    let client = || -> Result<u64> {
        let mut connection = Connection::open(server)?;
        let mut events = 0;
        loop {
            let batch = &batches[next.fetch_add(1, Ordering::Relaxed) % batches.len()];
            let before = claimed.fetch_add(batch.events, Ordering::Relaxed);
            let over = match until {
                Until::Elapsed(duration) => begun.elapsed() >= duration,
                Until::Sent(count) => before >= count,
            };
            if over {
                return Ok(events);
            }
            let answer = connection.send(&batch.request).context("sending a batch")?;
            if answer.status != 200 {
                bail!("a batch was answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            }
            events += batch.events;
        }
    };
    let events = thread::scope(|scope| {
        let clients: Vec<_> = (0..connections.max(1)).map(|_| scope.spawn(client)).collect();
        let results = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
        results.sum::<Result<u64>>()
    })?;
    Ok(Sent { events: events as f64, elapsed: begun.elapsed() })
}
