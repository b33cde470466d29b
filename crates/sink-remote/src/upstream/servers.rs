//! Chooses the writer of a request: a lane sticks to one, and uses the next available one in its order while that one is ejected.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use event::Lane;
use tokio::time::Instant;

use super::Spread;
use super::server::{ServerKey, ServerRank, WriterServer};

/// The current writers of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// The upstream's name.
    upstream: Arc<str>,
    state: Mutex<State>,
}

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
    /// The sinks that use the upstream. Dead ones belong to sinks that are gone.
    sinks: Vec<Weak<SinkUse>>,
}

/// A sink's use of an upstream, for as long as the sink lives. The prober finds out which writers serve the sink.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SinkUse {
    /// The writers' sink.
    pub(crate) sink: String,
    /// The name of the only eligible writer, if there is one.
    pub(crate) server: Option<String>,
}

impl SinkUse {
    /// Whether the sink may use this writer.
    pub(crate) fn may_use(&self, server: &WriterServer) -> bool {
        self.server.is_none() || server.key().0 == self.server
    }
}

/// Writers in the order in which a request tries them.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The ones that served the sink last time.
    pub(crate) available: Vec<Arc<WriterServer>>,
    /// The others: untried ones, then ejected ones, the oldest failure first. A probe decides whether they get the request.
    pub(crate) others: Vec<Arc<WriterServer>>,
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
    pub(super) fn of(upstream: &str) -> Self {
        Self { upstream: upstream.into(), state: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self, key: ServerKey) -> Arc<WriterServer> {
        Arc::new(WriterServer::new(Arc::clone(&self.upstream), key))
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
        held.servers = keys.into_iter().map(|key| known(&key).unwrap_or_else(|| self.server(key))).collect();
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
                servers.push(self.server(key));
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

    /// Registers a sink that uses the upstream.
    pub(crate) fn register(&self, sink: SinkUse) -> Arc<SinkUse> {
        let sink = Arc::new(sink);
        self.held().sinks.push(Arc::downgrade(&sink));
        sink
    }

    /// The sinks that use the upstream, each once.
    pub(crate) fn sinks(&self) -> Vec<Arc<SinkUse>> {
        let mut held = self.held();
        held.sinks.retain(|sink| sink.strong_count() > 0);
        let mut sinks: Vec<Arc<SinkUse>> = Vec::new();
        for sink in held.sinks.iter().filter_map(Weak::upgrade) {
            if !sinks.contains(&sink) {
                sinks.push(sink);
            }
        }
        sinks
    }

    /// The writers in the order in which they are tried.
    pub(crate) fn order(&self, choice: &Choice<'_>) -> Order {
        let now = Instant::now();
        let mut held = self.held();
        let is_wanted =
            |server: &&Arc<WriterServer>| choice.server.is_none() || server.key().0.as_deref() == choice.server;
        // Rendezvous hashing: removing a writer moves its own lanes only.
        let rank = |server: &Arc<WriterServer>| (server.rank(choice.sink), Reverse(weight(choice.lane, server)));
        let mut ranked: Vec<_> =
            held.servers.iter().filter(is_wanted).map(|server| (rank(server), Arc::clone(server))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let count = ranked.partition_point(|(((rank, _), _), _)| *rank == ServerRank::Available);
        let mut available: Vec<_> = ranked.into_iter().map(|(_, server)| server).collect();
        let others = available.split_off(count);
        if choice.is_batch && held.spread == Spread::Batch && count > 1 {
            let (one, other) = pick_two(&mut held.picks, count);
            let cost = |at: usize| available.get(at).map_or(f64::MAX, |server| server.cost(now));
            let better = if cost(other) < cost(one) { other } else { one };
            available.swap(0, better);
        }
        Order { available, others }
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
        let Order { available, others } = servers.order(&Choice { lane, sink, server, is_batch: true });
        available.into_iter().chain(others).collect()
    }

    fn order(servers: &Servers, shard: u16) -> Vec<String> {
        order_of(servers, &lane(shard), "s", None).iter().map(|server| server.label()).collect()
    }

    fn serve(servers: &Servers, sink: &str) {
        for server in servers.all() {
            server.answers(false);
            server.serves(sink, false);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lane_returns_to_its_writer_after_a_success_only() {
        let servers = servers(&["a", "b", "c"]);
        serve(&servers, "s");
        let before = order(&servers, 0);
        assert_eq!(order(&servers, 0), before);
        let first = order_of(&servers, &lane(0), "s", None).remove(0);
        first.eject("gone".into());
        let moved = [before[1].clone(), before[2].clone(), before[0].clone()];
        assert_eq!(order(&servers, 0), moved);
        tokio::time::advance(60 * SECOND).await;
        assert_eq!(order(&servers, 0), moved, "time ends no ejection");
        first.answers(true);
        assert_eq!(order(&servers, 0), before);
    }

    #[tokio::test(start_paused = true)]
    async fn untried_writers_precede_ejected_ones() {
        let servers = servers(&["a", "b", "c", "d"]);
        let all = servers.all();
        for server in &all[..2] {
            (0..10).for_each(|_| server.eject("gone".into()));
            tokio::time::advance(SECOND).await;
        }
        all[3].answers(true);
        let label = |at: usize| all[at].label();
        assert!(order(&servers, 0)[..2].iter().all(|first| *first == label(2) || *first == label(3)));
        assert_eq!(order(&servers, 0)[2..], [label(0), label(1)]);
        all[3].serves("s", true);
        let of_lane = servers.order(&Choice { lane: &lane(0), sink: "s", server: None, is_batch: true });
        assert_eq!((of_lane.available.len(), of_lane.others.len()), (1, 3));
        assert_eq!(of_lane.available[0].label(), label(3), "an available writer is before all others");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_store_ejects_its_writer_for_one_sink() {
        let servers = servers(&["a", "b"]);
        serve(&servers, "s");
        serve(&servers, "other");
        let before = order(&servers, 0);
        let first = order_of(&servers, &lane(0), "s", None).remove(0);
        first.eject_for("s", "failed".into());
        first.answers(false);
        assert_eq!(order(&servers, 0)[0], before[1], "an answer of the writer says nothing of the store");
        assert_eq!(order_of(&servers, &lane(0), "other", None)[0].label(), before[0]);
        assert_eq!(
            (first.state(), first.ejected_sinks()),
            (super::super::ServerState::Available, vec![("s".to_owned(), "failed".into())])
        );
        first.serves("s", true);
        assert_eq!(order(&servers, 0), before);
    }

    #[test]
    fn sinks_are_listed_once_while_they_live() {
        let servers = Servers::default();
        let sink = |name: &str| servers.register(SinkUse { sink: name.to_owned(), server: None });
        let (one, again, other) = (sink("a"), sink("a"), sink("b"));
        assert_eq!(servers.sinks(), [one, other.clone()]);
        drop((again, other));
        assert_eq!(servers.sinks(), [], "no sink is left");
    }

    #[test]
    fn removed_writer_moves_its_own_lanes_only() {
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
    fn sink_of_a_named_writer_uses_no_other() {
        let servers = servers(&["a", "b"]);
        for server in servers.all() {
            server.eject("gone".into());
        }
        let labels: Vec<_> = order_of(&servers, &lane(0), "s", Some("b")).iter().map(|server| server.label()).collect();
        assert_eq!(labels, ["http://b:8081"]);
    }

    #[tokio::test(start_paused = true)]
    async fn batches_go_to_the_faster_of_two_writers() {
        let servers = servers(&["a", "b", "c"]);
        serve(&servers, "s");
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
