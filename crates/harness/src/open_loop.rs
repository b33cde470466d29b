//! Requests on a schedule of so many a second. Latency counts from the time at which a request was due, which includes the time that a stalled
//! server delays later requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use generator::{Generator, RecordKind};

use crate::http::{self, Connection};

/// Different requests of a load.
const REQUESTS: u64 = 32;
/// At most the requests that are due in this time are in flight: a slower store delays the later ones.
const WAITING: Duration = Duration::from_secs(2);
const CONNECTIONS: std::ops::RangeInclusive<u32> = 8..=400;

/// The server waits nearly as long as a client: a longer answer counts with this time.
pub const PATIENT: &str = "[gateway]\nack_timeout = \"25s\"\n";

/// When a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckLevel {
    /// Its events are durable.
    Durable,
    /// Its events are in their stores.
    Stored,
}

/// A load.
pub struct OpenLoop {
    server: SocketAddr,
    requests: Vec<Vec<u8>>,
    pause: Duration,
    duration: Duration,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it should have been sent, from the load's beginning.
    pub due: Duration,
    /// From then on until it was answered.
    pub latency: Duration,
}

impl OpenLoop {
    /// Batches of so many access records of this type, together `events_per_second`.
    pub fn new(server: SocketAddr, of: &str, events: u32, events_per_second: f64, answer: AckLevel) -> Self {
        let mut headers = vec!["Content-Type: application/x-ndjson"];
        if answer == AckLevel::Stored {
            headers.push("Forebay-Ack: stored");
        }
        let request = |seed| {
            let mut generator = Generator::new(RecordKind::Access, seed);
            let mut body = Vec::new();
            (0..events).for_each(|_| generator.next_line(&mut body));
            http::post(&format!("/ingest/batch/{of}"), &headers, &body)
        };
        let pause = Duration::from_secs_f64(f64::from(events) / events_per_second);
        Self { server, requests: (0..REQUESTS).map(request).collect(), pause, duration: Duration::MAX }
    }

    /// The same, and it ends after so long.
    pub fn lasting(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Sends until the time is over, or `over` is set. Requests that aren't stored within the server's `ack_timeout` count with
    /// what that took; any other answer but 200 is an error.
    pub fn run(&self, over: &AtomicBool) -> Result<Vec<Sample>> {
        let shared =
            Shared { load: self, begun: Instant::now(), next: AtomicU32::new(0), over, failed: AtomicBool::new(false) };
        let connections = (WAITING.as_nanos() / self.pause.as_nanos().max(1)).try_into().unwrap_or(u32::MAX);
        let connections = connections.clamp(*CONNECTIONS.start(), *CONNECTIONS.end());
        thread::scope(|scope| {
            let clients: Vec<_> = (0..connections).map(|_| scope.spawn(|| shared.client())).collect();
            let samples = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
            Ok(samples.collect::<Result<Vec<_>>>()?.concat())
        })
    }
}

/// The state that the connections of a load share.
struct Shared<'a> {
    load: &'a OpenLoop,
    begun: Instant,
    next: AtomicU32,
    over: &'a AtomicBool,
    failed: AtomicBool,
}

impl Shared<'_> {
    fn client(&self) -> Result<Vec<Sample>> {
        let sent = self.send();
        if sent.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn send(&self) -> Result<Vec<Sample>> {
        let mut connection = None;
        let mut samples = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let due = self.load.pause * number;
            if due >= self.load.duration || self.waits_in_vain(due) {
                return Ok(samples);
            }
            let request = &self.load.requests[number as usize % self.load.requests.len()];
            match send_one(self.load.server, &mut connection, request)? {
                // 202 is a store that took longer than the server waits.
                200 | 202 => samples.push(Sample { due, latency: self.begun.elapsed().saturating_sub(due) }),
                status => bail!("a request was answered {status}"),
            }
        }
    }

    /// Waits until it is time. Whether the load is over then.
    fn waits_in_vain(&self, due: Duration) -> bool {
        thread::sleep(due.saturating_sub(self.begun.elapsed()));
        self.over.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// Sends on a connection, which is opened again if the server has closed it.
fn send_one(server: SocketAddr, connection: &mut Option<Connection>, request: &[u8]) -> Result<u16> {
    if let Some(mut open) = connection.take()
        && let Ok(answer) = open.send(request)
    {
        *connection = Some(open);
        return Ok(answer.status);
    }
    let mut open = Connection::open(server).context("connecting to the server")?;
    let answer = open.send(request).context("sending a request")?;
    *connection = Some(open);
    Ok(answer.status)
}

/// The latency that this share of the requests didn't exceed, in milliseconds; not a number if there are none.
pub fn percentile(samples: &[Sample], hundredths: usize) -> f64 {
    let mut latencies: Vec<Duration> = samples.iter().map(|sample| sample.latency).collect();
    latencies.sort_unstable();
    let at = (latencies.len() * hundredths).div_ceil(100).saturating_sub(1);
    latencies.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Answers each request on a connection, and nothing before this moment.
    fn answer_from(stream: TcpStream, moment: Instant) {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                length = line.strip_prefix("Content-Length: ").map_or(length, |length| length.trim().parse().unwrap());
                line.clear();
            }
            if line.is_empty() {
                return;
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            thread::sleep(moment.saturating_duration_since(Instant::now()));
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    }

    #[test]
    fn latency_counts_from_the_due_time() {
        let held = Duration::from_millis(200);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut first = None;
            for stream in listener.incoming() {
                let moment = *first.get_or_insert_with(Instant::now) + held;
                thread::spawn(move || answer_from(stream.unwrap(), moment));
            }
        });
        let load = OpenLoop::new(server, "t", 1, 5_000.0, AckLevel::Durable).lasting(held / 2);
        let samples = load.run(&AtomicBool::new(false)).unwrap();
        assert_eq!(samples.len(), 500, "more than there are connections");
        assert!(samples.iter().all(|sample| sample.due + sample.latency >= held), "{samples:?}");
    }

    #[test]
    fn percentile_is_one_of_the_latencies() {
        let sample = |latency| Sample { due: Duration::ZERO, latency: Duration::from_millis(latency) };
        let samples: Vec<Sample> = (1..=200).rev().map(sample).collect();
        assert!((percentile(&samples, 50) - 100.0).abs() < 1e-9);
        assert!((percentile(&samples, 99) - 198.0).abs() < 1e-9);
        assert!((percentile(&samples[..1], 99) - 200.0).abs() < 1e-9);
        assert!(percentile(&[], 99).is_nan());
    }
}
