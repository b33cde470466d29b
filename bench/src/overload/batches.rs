//! Packed batches of about 1 MiB, which cost the server far more than their bytes on the wire.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{Load, Pace, Sent};
use crate::reference::check_loop::Piece;
use harness::http::{self, Connection};
use harness::workspace::gzip;

/// As many as keep the server busy.
const PEAK_CONNECTIONS: u32 = 8;
/// More than the server keeps in flight.
const OVERLOAD_CONNECTIONS: u32 = 256;

pub(super) struct Batches(Vec<Packed>);

/// A request of a packed batch, and its events.
struct Packed {
    request: Vec<u8>,
    events: u64,
}

impl Batches {
    /// A request of each piece. `folder` has room for one.
    pub(super) fn pack(folder: &Path, pieces: &[Piece]) -> Result<Self> {
        let pack = |piece: &Piece| -> Result<Packed> {
            let file = folder.join("batch.ndjson");
            std::fs::write(&file, &piece.bytes)?;
            let bytes = std::fs::read(gzip(&file)?)?;
            let headers = ["Content-Type: application/x-ndjson", "Content-Encoding: gzip"];
            Ok(Packed { request: http::post("/ingest/batch", &headers, &bytes), events: piece.events })
        };
        pieces.iter().map(pack).collect::<Result<_>>().map(Self)
    }
}

impl Load for Batches {
    const WHAT: &'static str = "packed batches";

    fn send(&self, server: SocketAddr, pace: Pace, duration: Duration) -> Result<Sent> {
        let (connections, pause) = match pace {
            Pace::AsAnswered => (PEAK_CONNECTIONS, None),
            Pace::Scheduled(rate) => {
                (OVERLOAD_CONNECTIONS, Some(Duration::from_secs_f64(f64::from(OVERLOAD_CONNECTIONS) / rate)))
            }
        };
        let sending = Sending {
            server,
            requests: &self.0,
            pause,
            begun: Instant::now(),
            duration,
            next: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        };
        sending.on(connections)
    }
}

/// The state that the connections of one load share.
struct Sending<'a> {
    server: SocketAddr,
    requests: &'a [Packed],
    /// Between two requests of one connection; none without a schedule.
    pause: Option<Duration>,
    begun: Instant,
    duration: Duration,
    next: AtomicU64,
    refused: AtomicU64,
    failed: AtomicBool,
}

impl Sending<'_> {
    fn on(&self, connections: u32) -> Result<Sent> {
        let taken = thread::scope(|scope| {
            let clients: Vec<_> = (0..connections)
                .map(|number| {
                    let first = self.pause.unwrap_or_default() * number / connections;
                    scope.spawn(move || self.run(first))
                })
                .collect();
            let taken = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
            taken.collect::<Result<Vec<_>>>()
        })?;
        let mut latencies: Vec<f64> = taken.iter().flatten().map(|(_, latency)| latency.as_secs_f64() * 1e3).collect();
        latencies.sort_by(f64::total_cmp);
        let seconds = self.begun.elapsed().as_secs_f64();
        let events: u64 = taken.iter().flatten().map(|(events, _)| events).sum();
        Ok(Sent {
            events: events as f64 / seconds,
            requests: latencies.len() as f64 / seconds,
            refused: self.refused.load(Ordering::Relaxed) as f64 / seconds,
            p99_ms: latencies.get(latencies.len() * 99 / 100).copied().context("no batch was taken")?,
        })
    }

    /// One connection: the accepted batches, each with its events and the time since it was due.
    fn run(&self, first: Duration) -> Result<Vec<(u64, Duration)>> {
        let sent = self.send(first);
        if sent.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn send(&self, first: Duration) -> Result<Vec<(u64, Duration)>> {
        let mut connection = None;
        let mut taken = Vec::new();
        let mut due = self.begun + first;
        while due < self.begun + self.duration && !self.failed.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.begun.elapsed() > self.duration {
                break;
            }
            let number = usize::try_from(self.next.fetch_add(1, Ordering::Relaxed))?;
            let packed = &self.requests[number % self.requests.len()];
            match self.send_one(&mut connection, &packed.request)? {
                200 => taken.push((packed.events, due.elapsed())),
                503 => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
                status => bail!("a batch was answered {status}"),
            }
            due = self.pause.map_or_else(Instant::now, |pause| due + pause);
        }
        Ok(taken)
    }

    /// Sends on a connection, which is opened again if the server closed it after a rejection.
    fn send_one(&self, connection: &mut Option<Connection>, request: &[u8]) -> Result<u16> {
        for _ in 0..2 {
            let mut open = match connection.take() {
                Some(open) => open,
                None => Connection::open(self.server)?,
            };
            if let Ok(answer) = open.send(request) {
                *connection = Some(open);
                return Ok(answer.status);
            }
        }
        bail!("twice no answer to a batch")
    }
}
