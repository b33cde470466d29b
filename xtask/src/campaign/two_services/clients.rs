//! Clients of two gateways: each event goes to one of them, and some with the same key to both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Result;

use super::GATEWAYS;
use crate::campaign::kills::clients::{Shared, join, send, start};
use crate::campaign::kills::oracle::{Acknowledged, Event};
use random::Random;

/// One event in so many goes through both gateways.
const BOTH: u64 = 4;

/// All of them.
pub(super) struct Clients {
    shared: Arc<[Shared; GATEWAYS]>,
    threads: Vec<JoinHandle<Result<Acknowledged>>>,
}

impl Clients {
    /// Starts them on gateways that are up.
    pub(super) fn start(gateways: [SocketAddr; GATEWAYS], count: u32, seed: u64) -> Result<Self> {
        let shared = Arc::new(gateways.map(|gateway| Shared::new(gateway, seed)));
        shared.iter().for_each(Shared::server_is_up);
        let client = |number| {
            let shared = shared.clone();
            start(number, move || run(&shared, number, seed))
        };
        let threads = (0..count).map(client).collect::<Result<_>>()?;
        Ok(Self { shared, threads })
    }

    pub(super) fn gateway_goes_down(&self, number: usize) {
        self.shared[number].server_goes_down();
    }

    pub(super) fn gateway_is_up(&self, number: usize) {
        self.shared[number].server_is_up();
    }

    /// Each ends once it has its answer.
    pub(super) fn stop(&self) {
        self.shared.iter().for_each(Shared::stop);
    }

    /// Waits for the end of all, and says what was acknowledged.
    pub(super) fn finish(self) -> Result<Vec<Acknowledged>> {
        self.stop();
        self.threads.into_iter().map(join).collect()
    }
}

fn run(shared: &[Shared; GATEWAYS], client: u32, seed: u64) -> Result<Acknowledged> {
    let mut known = Acknowledged::new();
    let mut connections = [const { None }; GATEWAYS];
    let mut random = Random::new(seed ^ u64::from(client));
    while !shared.iter().any(Shared::is_stopped) {
        let event = Event { client, number: u32::try_from(known.len())? };
        let first = usize::try_from(random.below(GATEWAYS as u64))?;
        let gateways = if random.below(BOTH) == 0 { GATEWAYS } else { 1 };
        // Acknowledged by one of them is acknowledged.
        let mut is_acknowledged = false;
        for gateway in (0..GATEWAYS).cycle().skip(first).take(gateways) {
            is_acknowledged |= send(&shared[gateway], &mut connections[gateway], event, false)?;
        }
        known.push(is_acknowledged);
    }
    Ok(known)
}
