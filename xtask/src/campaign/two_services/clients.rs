//! Clients of two gateways: each event goes to one of them, and some with the same key to both.

use anyhow::Result;

use super::GATEWAYS;
use crate::campaign::kills::clients::{Shared, send};
use crate::campaign::kills::oracle::{Acknowledged, Event};
use crate::http::Client;
use random::Random;

/// One event in so many goes through both gateways.
const BOTH: u64 = 4;

/// Runs a client until it has to stop.
pub(super) fn run(shared: &[Shared; GATEWAYS], client: u32, seed: u64) -> Result<Acknowledged> {
    let mut known = Acknowledged::new();
    let mut clients = shared.each_ref().map(|gateway| Client::new(gateway.address()));
    let mut random = Random::new(seed ^ u64::from(client));
    while !shared.iter().any(Shared::is_stopped) {
        let event = Event { client, number: u32::try_from(known.len())? };
        let first = usize::try_from(random.below(GATEWAYS as u64))?;
        let gateways = if random.below(BOTH) == 0 { GATEWAYS } else { 1 };
        // Acknowledged by one of them is acknowledged.
        let mut is_acknowledged = false;
        for gateway in (0..GATEWAYS).cycle().skip(first).take(gateways) {
            is_acknowledged |= send(&shared[gateway], &mut clients[gateway], event, false)?;
        }
        known.push(is_acknowledged);
    }
    Ok(known)
}
