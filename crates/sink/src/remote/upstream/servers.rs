//! Which writer gets a request: a lane sticks to one, and uses the next one of its own order while that one is ejected.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::Lane;
use tokio::time::Instant;

use super::Spread;
use super::server::{Server, ServerKey};

/// The current writers of an upstream.
#[derive(Debug, Default)]
pub(in crate::remote) struct Servers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    servers: Vec<Arc<Server>>,
    spread: Spread,
    /// The writer that got a lane's last batch.
    used: HashMap<Lane, Arc<Server>>,
    /// Whether the last request found no writer that answers.
    is_unreachable: bool,
    /// Picks of two writers so far: their randomness.
    picks: u64,
}

/// For what a writer is chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::remote) struct Choice<'a> {
    pub(in crate::remote) lane: &'a Lane,
    /// The writers' sink.
    pub(in crate::remote) sink: &'a str,
    /// The name of the only writer that will do.
    pub(in crate::remote) server: Option<&'a str>,
    pub(in crate::remote) is_batch: bool,
}

impl Servers {
    fn held(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Arc<Server>> {
        self.held().servers.clone()
    }

    pub(super) fn set_spread(&self, spread: Spread) {
        self.held().spread = spread;
    }

    /// Exchanges the set; writers that were there before keep their state. Says whether the set has changed.
    pub(super) fn replace(&self, keys: Vec<ServerKey>) -> bool {
        let mut held = self.held();
        let before = std::mem::take(&mut held.servers);
        let known = |key: &ServerKey| before.iter().find(|server| server.key() == key).cloned();
        held.servers =
            keys.into_iter().map(|key| known(&key).unwrap_or_else(|| Arc::new(Server::new(key)))).collect();
        let is_same = before.len() == held.servers.len()
            && held.servers.iter().all(|server| before.iter().any(|known| Arc::ptr_eq(known, server)));
        let State { servers, used, .. } = &mut *held;
        used.retain(|_, used| servers.iter().any(|server| Arc::ptr_eq(server, used)));
        !is_same
    }

    pub(super) fn user_of(&self, lane: &Lane) -> Option<Arc<Server>> {
        self.held().used.get(lane).cloned()
    }

    /// The lane's batch goes to this writer.
    pub(in crate::remote) fn uses(&self, lane: &Lane, server: &Arc<Server>) {
        let mut held = self.held();
        match held.used.get_mut(lane) {
            Some(used) => used.clone_from(server),
            None => drop(held.used.insert(lane.clone(), Arc::clone(server))),
        }
    }

    pub(in crate::remote) fn set_unreachable(&self, is_unreachable: bool) {
        self.held().is_unreachable = is_unreachable;
    }

    pub(in crate::remote) fn is_unreachable(&self) -> bool {
        self.held().is_unreachable
    }

    /// The writers in the order in which they are tried. Ejected ones come last, those first whose failure is longest ago, so that there
    /// is always one to try.
    pub(in crate::remote) fn order(&self, choice: &Choice<'_>) -> Vec<Arc<Server>> {
        let now = Instant::now();
        let mut held = self.held();
        let is_wanted = |server: &&Arc<Server>| choice.server.is_none() || server.key().0.as_deref() == choice.server;
        // Rendezvous hashing: a writer that goes moves its own lanes only.
        let rank = |server: &Arc<Server>| (server.failed_at(choice.sink, now), Reverse(weight(choice.lane, server)));
        let mut order: Vec<_> =
            held.servers.iter().filter(is_wanted).map(|server| (rank(server), Arc::clone(server))).collect();
        order.sort_by_key(|(rank, _)| *rank);
        let healthy = order.partition_point(|((failed_at, _), _)| failed_at.is_none());
        if choice.is_batch && held.spread == Spread::Batch && healthy > 1 {
            let (one, other) = pick_two(&mut held.picks, healthy);
            let cost = |at: usize| order.get(at).map_or(f64::MAX, |(_, server)| server.cost(now));
            let better = if cost(other) < cost(one) { other } else { one };
            order.swap(0, better);
        }
        order.into_iter().map(|(_, server)| server).collect()
    }
}

fn weight(lane: &Lane, server: &Server) -> u64 {
    let (_, endpoint, address) = server.key();
    let mut hasher = DefaultHasher::new();
    (lane, endpoint.to_string(), address).hash(&mut hasher);
    hasher.finish()
}

/// Two different numbers below `count`, which is at least 2.
fn pick_two(picks: &mut u64, count: usize) -> (usize, usize) {
    *picks = picks.wrapping_add(1);
    let mut hasher = DefaultHasher::new();
    picks.hash(&mut hasher);
    let random = usize::try_from(hasher.finish() >> 32).unwrap_or_default();
    let one = random % count;
    (one, (one + 1 + random / count % (count - 1)) % count)
}
