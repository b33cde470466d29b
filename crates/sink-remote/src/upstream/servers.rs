//! Chooses the writer of a request: a lane sticks to one, and uses the next one of its own order while that one is ejected.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::Lane;
use tokio::time::Instant;

use super::Spread;
use super::server::{ServerKey, WriterServer};

/// The current writers of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Servers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    servers: Vec<Arc<WriterServer>>,
    spread: Spread,
    /// The writer that got a lane's last batch.
    used: HashMap<Lane, Arc<WriterServer>>,
    /// Whether the last request found no writer that answers.
    is_unreachable: bool,
    /// The number of picks of two writers so far: the seed of the next one.
    picks: u64,
}

/// The criteria for choosing a writer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) lane: &'a Lane,
    /// The writers' sink.
    pub(crate) sink: &'a str,
    /// The name of the only eligible writer, if there is one.
    pub(crate) server: Option<&'a str>,
    pub(crate) is_batch: bool,
}

impl Servers {
    fn held(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Arc<WriterServer>> {
        self.held().servers.clone()
    }

    pub(super) fn set_spread(&self, spread: Spread) {
        self.held().spread = spread;
    }

    /// Replaces the set; writers that were in it before keep their state. Returns whether the set has changed.
    pub(super) fn replace(&self, keys: Vec<ServerKey>) -> bool {
        let mut held = self.held();
        let before = std::mem::take(&mut held.servers);
        let known = |key: &ServerKey| before.iter().find(|server| server.key() == key).cloned();
        held.servers =
            keys.into_iter().map(|key| known(&key).unwrap_or_else(|| Arc::new(WriterServer::new(key)))).collect();
        let is_same = before.len() == held.servers.len()
            && held.servers.iter().all(|server| before.iter().any(|known| Arc::ptr_eq(known, server)));
        let State { servers, used, .. } = &mut *held;
        used.retain(|_, used| servers.iter().any(|server| Arc::ptr_eq(server, used)));
        !is_same
    }

    /// Adds the writers that are not in the set.
    pub(super) fn add(&self, keys: Vec<ServerKey>) {
        let servers = &mut self.held().servers;
        for key in keys {
            if !servers.iter().any(|server| *server.key() == key) {
                servers.push(Arc::new(WriterServer::new(key)));
            }
        }
    }

    pub(super) fn user_of(&self, lane: &Lane) -> Option<Arc<WriterServer>> {
        self.held().used.get(lane).cloned()
    }

    /// Records that the lane's batch goes to this writer.
    pub(crate) fn uses(&self, lane: &Lane, server: &Arc<WriterServer>) {
        let mut held = self.held();
        match held.used.get_mut(lane) {
            Some(used) => used.clone_from(server),
            None => drop(held.used.insert(lane.clone(), Arc::clone(server))),
        }
    }

    pub(crate) fn set_unreachable(&self, is_unreachable: bool) {
        self.held().is_unreachable = is_unreachable;
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        self.held().is_unreachable
    }

    /// The writers in the order in which they are tried. Ejected ones come last, the oldest failure first, so there is always one to try.
    pub(crate) fn order(&self, choice: &Choice<'_>) -> Vec<Arc<WriterServer>> {
        let now = Instant::now();
        let mut held = self.held();
        let is_wanted =
            |server: &&Arc<WriterServer>| choice.server.is_none() || server.key().0.as_deref() == choice.server;
        // Rendezvous hashing: removing a writer moves its own lanes only.
        let rank =
            |server: &Arc<WriterServer>| (server.failed_at(choice.sink, now), Reverse(weight(choice.lane, server)));
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

fn weight(lane: &Lane, server: &WriterServer) -> u64 {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use std::time::Duration;

    use event::Origin;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lane(shard: u16) -> Lane {
        Lane { origin: Origin([1; 16]), shard, sink: "s".into() }
    }

    fn keys(names: &[&str]) -> Vec<ServerKey> {
        let key = |name: &&str| (Some((*name).to_owned()), format!("http://{name}:8081").parse().unwrap(), None);
        names.iter().map(key).collect()
    }

    fn servers(names: &[&str]) -> Servers {
        let servers = Servers::default();
        assert!(servers.replace(keys(names)));
        servers
    }

    fn order_of(servers: &Servers, lane: &Lane, sink: &str, server: Option<&str>) -> Vec<Arc<WriterServer>> {
        servers.order(&Choice { lane, sink, server, is_batch: true })
    }

    fn order(servers: &Servers, shard: u16) -> Vec<String> {
        order_of(servers, &lane(shard), "s", None).iter().map(|server| server.label()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_sticks_to_a_writer_and_returns_after_its_ejection() {
        let servers = servers(&["a", "b", "c"]);
        let before = order(&servers, 0);
        assert_eq!(order(&servers, 0), before);
        let first = order_of(&servers, &lane(0), "s", None).remove(0);
        first.eject();
        let moved = [before[1].clone(), before[2].clone(), before[0].clone()];
        assert_eq!(order(&servers, 0), moved);
        tokio::time::advance(SECOND).await;
        assert_eq!(order(&servers, 0), before);
        first.eject();
        tokio::time::advance(SECOND).await;
        assert_eq!(order(&servers, 0), moved, "the second ejection is longer");
        first.answers();
        assert_eq!(order(&servers, 0), before);
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_always_a_writer_to_try_and_the_one_whose_failure_is_longest_ago_is_first() {
        let servers = servers(&["a", "b"]);
        let mut expected = Vec::new();
        for server in servers.all() {
            (0..10).for_each(|_| server.eject());
            expected.push(server.label());
            tokio::time::advance(SECOND).await;
        }
        assert_eq!((order(&servers, 0), order(&servers, 1)), (expected.clone(), expected));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_ejects_its_writer_for_its_own_sink_only() {
        let servers = servers(&["a", "b"]);
        let before = order(&servers, 0);
        let first = order_of(&servers, &lane(0), "s", None).remove(0);
        first.eject_for("s");
        first.answers();
        assert_eq!(order(&servers, 0)[0], before[1], "an answer of the writer says nothing of the store");
        assert_eq!(order_of(&servers, &lane(0), "other", None)[0].label(), before[0]);
        first.stores("s");
        assert_eq!(order(&servers, 0), before);
    }

    #[test]
    fn lanes_are_spread_and_a_writer_that_goes_moves_its_own_lanes_only() {
        let servers = servers(&["a", "b", "c", "d"]);
        let before: Vec<_> = (0..400).map(|shard| order(&servers, shard).remove(0)).collect();
        for name in ["a", "b", "c", "d"] {
            let count = before.iter().filter(|label| **label == format!("http://{name}:8081")).count();
            assert!((50..=150).contains(&count), "{name} has {count} lanes");
        }
        let known = servers.all();
        assert!(servers.replace(keys(&["d", "c", "b"])));
        assert!(!servers.replace(keys(&["b", "c", "d"])), "another order is no change");
        assert!(servers.all().iter().all(|server| known.iter().any(|known| Arc::ptr_eq(known, server))));
        for (shard, before) in before.iter().enumerate().filter(|(_, before)| *before != "http://a:8081") {
            assert_eq!(order(&servers, u16::try_from(shard).unwrap())[0], *before);
        }
    }

    #[test]
    fn a_sink_of_one_named_writer_uses_no_other() {
        let servers = servers(&["a", "b"]);
        for server in servers.all() {
            server.eject();
        }
        let labels: Vec<_> = order_of(&servers, &lane(0), "s", Some("b")).iter().map(|server| server.label()).collect();
        assert_eq!(labels, ["http://b:8081"]);
    }

    #[tokio::test(start_paused = true)]
    async fn batches_go_to_the_faster_of_two_writers_and_a_slow_one_is_tried_again() {
        let servers = servers(&["a", "b", "c"]);
        servers.set_spread(Spread::Batch);
        let used = async |rounds: usize, took: fn(&str) -> Duration| {
            let mut counts = [0; 3];
            for _ in 0..rounds {
                let server = order_of(&servers, &lane(0), "s", None).remove(0);
                counts[usize::from(server.label().as_bytes()[7] - b'a')] += 1;
                let in_flight = server.begin();
                tokio::time::advance(took(&server.label())).await;
                in_flight.answered(Some(1000));
            }
            counts
        };
        let slow_a = |label: &str| Duration::from_millis(if label.contains('a') { 100 } else { 1 });
        let counts = used(300, slow_a).await;
        assert!(counts[0] < 20 && counts[1] > 50 && counts[2] > 50, "{counts:?}");
        tokio::time::advance(Duration::from_mins(2)).await;
        let counts = used(300, |_| Duration::from_millis(1)).await;
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }
}
