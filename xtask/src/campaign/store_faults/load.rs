//! Clients that send batches, each until it is acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::campaign::keyed_batches::{SentBatch, request};
use crate::clients::with_clients;
use crate::http::Connection;

const CLIENTS: u32 = 8;
/// Records of a usual batch, and bytes of each.
const RECORDS: u32 = 10;
const RECORD_BYTES: usize = 200;
/// A large batch: about as much as the cache of an embedded store holds until it commits, and more with each of some batches. A store may
/// fail at any of its records, also at the last one.
const LARGE_RECORDS: u32 = 16;
const LARGE_STEPS: u32 = 12;
const LARGE_RECORD_BYTES: usize = 100_000;

/// Running clients.
pub(super) struct Load {
    intake: SocketAddr,
    bursts: AtomicU32,
}

impl Load {
    /// Runs clients while `act` runs; each rests for so long between two batches. Returns what was acknowledged.
    pub(super) fn run(
        intake: SocketAddr,
        rest: Duration,
        act: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<Vec<SentBatch>> {
        let (load, stop) = (Self { intake, bursts: AtomicU32::new(0) }, AtomicBool::new(false));
        let client = |client| send_until(intake, client, rest, &stop);
        let (known, ()) = with_clients(CLIENTS, client, || act(&load), || stop.store(true, Ordering::SeqCst))?;
        let bursts = 0..load.bursts.load(Ordering::Relaxed);
        Ok(bursts.map(large).chain(known.concat()).collect())
    }

    /// Sends one large batch, and waits until it is acknowledged.
    pub(super) fn burst(&self) -> Result<()> {
        let number = self.bursts.fetch_add(1, Ordering::Relaxed);
        send(&mut Connection::open(self.intake)?, large(number), LARGE_RECORD_BYTES)
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
    let answer = connection.send(&request(batch, bytes)).context("posting a batch")?;
    if answer.status != 200 {
        bail!("a batch was answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}
