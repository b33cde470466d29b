//! Clients that send distinct events one at a time, and repeat each with the same key until it is acknowledged.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};

use super::oracle::{Acknowledged, Event};
use crate::http::{self, Client};
use random::Random;

/// How long a client waits before it retries after a full disk.
const DISK_FULL_PAUSE: Duration = Duration::from_millis(20);

/// The state that the clients share with the one that kills.
pub(in crate::campaign) struct Shared {
    server: SocketAddr,
    seed: u64,
    stop: AtomicBool,
    /// A server that isn't killed cuts no answer.
    cuts_answers: bool,
    in_flight: AtomicUsize,
    /// Events that were acknowledged, and answers that the disk is full.
    taken: AtomicUsize,
    disk_full: AtomicUsize,
    state: Mutex<ServerState>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
struct ServerState {
    is_up: bool,
    /// Counts the starts: a client whose connection broke waits for a later one than it knew.
    starts: u64,
}

impl Shared {
    pub(in crate::campaign) fn new(server: SocketAddr, seed: u64) -> Self {
        Self {
            server,
            seed,
            stop: AtomicBool::new(false),
            cuts_answers: true,
            in_flight: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            disk_full: AtomicUsize::new(0),
            state: Mutex::new(ServerState { is_up: false, starts: 0 }),
            changed: Condvar::new(),
        }
    }

    /// From now on an answer that isn't whole is a fault.
    pub(in crate::campaign) fn with_whole_answers(self) -> Self {
        Self { cuts_answers: false, ..self }
    }

    pub(in crate::campaign) const fn address(&self) -> SocketAddr {
        self.server
    }

    /// The server is ready: clients may connect.
    pub(in crate::campaign) fn server_is_up(&self) {
        let mut state = self.state();
        state.starts += 1;
        state.is_up = true;
        self.changed.notify_all();
    }

    /// The server is about to be killed: says how many requests are sent and not answered.
    pub(in crate::campaign) fn server_goes_down(&self) -> usize {
        self.state().is_up = false;
        self.in_flight.load(Ordering::SeqCst)
    }

    /// How many events were acknowledged so far.
    pub(in crate::campaign) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    /// How many answers reported a full disk so far.
    pub(in crate::campaign) fn disk_full(&self) -> usize {
        self.disk_full.load(Ordering::SeqCst)
    }

    /// Every client ends once it has its answer, or can't have one.
    pub(in crate::campaign) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        let _state = self.state();
        self.changed.notify_all();
    }

    pub(in crate::campaign) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Connects a client once the server is up, unless it has a connection. False after it is time to stop.
    pub(in crate::campaign) fn connect(&self, client: &mut Client) -> bool {
        while !client.is_connected() && !self.is_stopped() {
            let Some(starts) = self.wait_until_up() else { break };
            if client.connect().is_err() {
                self.wait_for_change(starts);
            }
        }
        client.is_connected()
    }

    fn wait_until_up(&self) -> Option<u64> {
        let mut state = self.state();
        while !state.is_up {
            if self.is_stopped() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.starts)
    }

    /// After a failed connection: the server was killed and not yet declared down, or its queue is full.
    fn wait_for_change(&self, starts: u64) {
        let pause = Duration::from_millis(5);
        let state = self.state();
        let same = |state: &mut ServerState| state.starts == starts && !self.is_stopped();
        drop(self.changed.wait_timeout_while(state, pause, same));
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a client; it returns its record.
pub(in crate::campaign) fn run(shared: &Shared, client: u32) -> Result<Acknowledged> {
    let mut known = Acknowledged::new();
    let mut open = Client::new(shared.server);
    let mut random = Random::new(shared.seed ^ u64::from(client));
    while !shared.is_stopped() {
        let event = Event { client, number: u32::try_from(known.len())? };
        known.push(false);
        // A few are abandoned after their first failure: they may be stored once or never.
        let is_abandoned = random.below(16) == 0;
        let is_acknowledged = send(shared, &mut open, event, is_abandoned)?;
        if let Some(last) = known.last_mut() {
            *last = is_acknowledged;
        }
    }
    Ok(known)
}

/// Sends one event until it is acknowledged, abandoned, or everything stops. Returns whether it was acknowledged.
pub(in crate::campaign) fn send(
    shared: &Shared,
    client: &mut Client,
    event: Event,
    is_abandoned: bool,
) -> Result<bool> {
    let key = format!("Idempotency-Key: {}", event.key());
    let headers = ["Content-Type: application/json", key.as_str()];
    let request = http::post("/ingest/event", &headers, event.payload(shared.seed).as_bytes());
    loop {
        if !shared.connect(client) {
            return Ok(false);
        }
        shared.in_flight.fetch_add(1, Ordering::SeqCst);
        let answer = client.send(&request);
        shared.in_flight.fetch_sub(1, Ordering::SeqCst);
        match answer.map(|answer| (answer.status, answer.body)) {
            Ok((200, _)) => {
                shared.taken.fetch_add(1, Ordering::SeqCst);
                return Ok(true);
            }
            Ok((503, _)) => {}
            Ok((507, _)) => {
                shared.disk_full.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(DISK_FULL_PAUSE);
            }
            Ok((status, body)) => bail!("key {}: answered {status}: {}", event.key(), String::from_utf8_lossy(&body)),
            Err(error) if error.kind() == ErrorKind::InvalidData && !shared.cuts_answers => {
                bail!("key {}: the answer was cut: {error}", event.key());
            }
            Err(_) => {}
        }
        if is_abandoned || shared.is_stopped() {
            return Ok(false);
        }
    }
}
