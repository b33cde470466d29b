//! Clients that send batches, each until it is acknowledged, and what they know of them.

use std::collections::HashSet;
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::http::{self, Connection};

const CLIENTS: u32 = 8;
/// Records of a usual batch, and bytes of each.
const RECORDS: u32 = 10;
const RECORD_BYTES: usize = 200;
/// A large batch: about as much as the cache of an embedded store holds until it commits, and more with each of some batches. A store may
/// fail at any of its records, also at the last one.
const LARGE_RECORDS: u32 = 16;
const LARGE_STEPS: u32 = 12;
const LARGE_RECORD_BYTES: usize = 100_000;

/// A batch: its client, its number among those, and its records.
type SentBatch = (u32, u32, u32);

/// Running clients.
pub(super) struct Load {
    intake: SocketAddr,
    stop: Arc<AtomicBool>,
    bursts: AtomicU32,
    clients: Vec<JoinHandle<Result<Vec<SentBatch>>>>,
}

/// The batches that were acknowledged.
pub(super) struct Acknowledged(Vec<SentBatch>);

impl Acknowledged {
    pub(super) fn events(&self) -> usize {
        self.0.iter().map(|(.., records)| *records as usize).sum()
    }
}

impl Load {
    /// Each client rests for so long between two batches.
    pub(super) fn start(intake: SocketAddr, rest: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |client| {
            let stop = stop.clone();
            thread::spawn(move || send_until(intake, client, rest, &stop))
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { intake, stop, bursts: AtomicU32::new(0), clients }
    }

    /// Sends one large batch, and waits until it is acknowledged.
    pub(super) fn burst(&self) -> Result<()> {
        let number = self.bursts.fetch_add(1, Ordering::Relaxed);
        send(&mut Connection::open(self.intake)?, large(number), LARGE_RECORD_BYTES)
    }

    /// Ends the clients.
    pub(super) fn stop(self) -> Result<Acknowledged> {
        self.stop.store(true, Ordering::SeqCst);
        let bursts = 0..self.bursts.load(Ordering::Relaxed);
        let mut batches: Vec<SentBatch> = bursts.map(large).collect();
        for client in self.clients {
            batches.extend(client.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        Ok(Acknowledged(batches))
    }
}

/// The large batch of this number.
const fn large(number: u32) -> SentBatch {
    (CLIENTS, number, LARGE_RECORDS + number % LARGE_STEPS)
}

fn send_until(intake: SocketAddr, client: u32, rest: Duration, stop: &AtomicBool) -> Result<Vec<SentBatch>> {
    let mut connection = Connection::open(intake)?;
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let batch = (client, u32::try_from(acknowledged.len())?, RECORDS);
        send(&mut connection, batch, RECORD_BYTES)?;
        acknowledged.push(batch);
        thread::sleep(rest);
    }
    Ok(acknowledged)
}

fn send(connection: &mut Connection, batch: SentBatch, bytes: usize) -> Result<()> {
    let (client, number, records) = batch;
    let filler = "x".repeat(bytes);
    let line = |record| format!("{{\"n\":\"{client}-{number}-{record}\",\"filler\":\"{filler}\"}}\n");
    let body: String = (0..records).map(line).collect();
    let key = format!("Idempotency-Key: {client}-{number}");
    let request = http::post("/ingest/batch", &["Content-Type: application/x-ndjson", &key], body.as_bytes());
    let answer = connection.send(&request).context("posting a batch")?;
    if answer.status != 200 {
        bail!("a batch was answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}

/// Compares payloads, a line each, with what was acknowledged: each record is stored once.
pub(super) fn judge(payloads: &mut dyn BufRead, acknowledged: &Acknowledged) -> Result<()> {
    let (mut stored, mut line) = (HashSet::new(), Vec::new());
    while payloads.read_until(b'\n', &mut line).context("reading what is stored")? > 0 {
        let text = String::from_utf8_lossy(&line);
        let name = text.split('"').nth(3).with_context(|| format!("stored but never sent: {text}"))?.to_owned();
        if stored.contains(&name) {
            bail!("{name} is stored twice");
        }
        stored.insert(name);
        line.clear();
    }
    let records = |(client, number, records): &SentBatch| {
        let (client, number) = (*client, *number);
        (0..*records).map(move |record| format!("{client}-{number}-{record}"))
    };
    let lost: Vec<String> = acknowledged.0.iter().flat_map(records).filter(|name| !stored.contains(name)).collect();
    match lost.first() {
        Some(name) => bail!("{} records were acknowledged and aren't stored, {name} among them", lost.len()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_must_be_stored_once() {
        let acknowledged = Acknowledged(vec![(0, 0, 2), (1, 0, 1)]);
        let line = |name: &str| format!("{{\"n\":\"{name}\",\"filler\":\"x\"}}\n");
        let judge = |names: &[&str]| {
            let text: String = names.iter().map(|name| line(name)).collect();
            judge(&mut text.as_bytes(), &acknowledged).map_err(|error| error.to_string())
        };
        assert_eq!(judge(&["0-0-1", "1-0-0", "0-0-0"]), Ok(()));
        assert_eq!(judge(&["0-0-1", "0-0-1"]), Err("0-0-1 is stored twice".to_owned()));
        let lost = "1 records were acknowledged and aren't stored, 1-0-0 among them";
        assert_eq!(judge(&["0-0-1", "0-0-0"]), Err(lost.to_owned()));
    }
}
