//! The fleet: the other processes whose pages a console shows. The server asks them only while a client asks it.

mod ask;
mod pass;
mod respond;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::peers::{PeerJson, PeersJson};
use discovery::Discovery;
use futures_util::future::join_all;
use net::http_client::{HttpClient, HttpOptions};
use serde_json::value::RawValue;
use sink_remote::{Upstream, UpstreamConfig, WriterServer};
use text::rfc3339;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::admin::payload::Payloads;
use ask::{Answer, ask};
pub(super) use respond::respond;

/// Peers at most; further ones aren't shown.
const PEERS_MAX: usize = 64;
/// Requests to peers that are passed on at a time, streams too.
const PASSED_MAX: usize = 32;
/// The pause between two rounds of questions.
const EVERY: Duration = Duration::from_secs(5);
/// Without a client for so long, nothing is asked any longer.
const IDLE: Duration = Duration::from_secs(15);
/// How long a first request waits for names and answers.
const FIRST_ROUND_MAX: Duration = Duration::from_secs(3);
/// How often the first round checks whether DNS or etcd has answered.
const NAMES_EVERY: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A profile takes up to a minute before its first byte.
const SILENCE_MAX: Duration = Duration::from_secs(75);

/// The other processes of a fleet. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Fleet(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sources: Vec<Source>,
    /// Bodies of requests that are passed on.
    payloads: Arc<Payloads>,
    places: Places,
    /// The answers of the last round, by the peers' names.
    answers: BTreeMap<String, Answer>,
    /// When a client asked last.
    asked_at: Option<Instant>,
    /// The number of rounds since a client began to ask. `None`: nothing runs.
    rounds: Option<watch::Receiver<u64>>,
}

/// The places of requests that are passed on.
#[derive(Clone)]
struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PASSED_MAX)))
    }
}

/// Peers that are listed, or discovered together.
#[derive(Clone)]
struct Source {
    upstream: Upstream,
    client: HttpClient,
}

/// A process of the fleet, and how to reach it.
struct Peer {
    server: Arc<WriterServer>,
    source: Source,
}

impl Source {
    fn new(config: &UpstreamConfig) -> Self {
        let options = HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max: SILENCE_MAX,
            waits_for_retry_after: false,
        };
        Self { upstream: Upstream::new(config.clone()), client: HttpClient::new(options) }
    }
}

impl Peer {
    /// Its name in paths: host and port.
    fn name(&self) -> String {
        let label = self.server.label();
        label.split_once("://").map_or(label.as_str(), |(_, place)| place).to_owned()
    }
}

impl Fleet {
    /// The peers of the current configuration.
    pub(crate) fn new(peers: &[UpstreamConfig]) -> Self {
        let fleet = Self::default();
        fleet.show(peers);
        fleet
    }

    /// Replaces the peers after a reload.
    pub(crate) fn show(&self, peers: &[UpstreamConfig]) {
        let mut state = self.state();
        state.sources = peers.iter().map(Source::new).collect();
        state.answers.clear();
        state.rounds = None;
    }

    /// All peers after this process, with their last answers.
    async fn peers(&self, own: PeerJson) -> PeersJson {
        self.follow().await;
        let mut peers = vec![own];
        let origin = peers[0].overview.as_deref().and_then(origin_of);
        let state = self.state();
        for peer in state.peers() {
            let answer = state.answers.get(&peer.name());
            // A name may resolve to this very process.
            if origin.is_some() && answer.is_some_and(|answer| answer.origin == origin) {
                continue;
            }
            peers.push(json(&peer, answer));
        }
        PeersJson { peers }
    }

    /// Asks the peers from now on, and waits for the first answers.
    async fn follow(&self) {
        let mut rounds = {
            let mut state = self.state();
            state.asked_at = Some(Instant::now());
            if state.sources.is_empty() {
                return;
            }
            let running = state.rounds.clone().filter(|rounds| rounds.has_changed().is_ok());
            running.unwrap_or_else(|| {
                let (sender, rounds) = watch::channel(0);
                state.rounds = Some(rounds.clone());
                tokio::spawn(self.clone().run(state.sources.clone(), sender));
                rounds
            })
        };
        let _ = timeout(FIRST_ROUND_MAX, rounds.wait_for(|rounds| *rounds > 0)).await;
    }

    /// Asks all peers every few seconds, until no client is interested or the configuration changes.
    async fn run(self, sources: Vec<Source>, rounds: watch::Sender<u64>) {
        let _discoveries: Vec<Discovery> =
            sources.iter().filter_map(|source| Discovery::start(&source.upstream)).collect();
        let deadline = Instant::now() + FIRST_ROUND_MAX / 2;
        while sources.iter().any(|source| source.upstream.servers().is_empty()) && Instant::now() < deadline {
            tokio::time::sleep(NAMES_EVERY).await;
        }
        loop {
            let begun = Instant::now();
            let peers = self.state().peers();
            let names: Vec<String> = peers.iter().map(Peer::name).collect();
            let answers =
                join_all(peers.iter().map(|peer| ask(&peer.source.client, &peer.source.upstream, &peer.server))).await;
            // Its receivers are gone if the configuration has changed.
            if rounds.is_closed() {
                return;
            }
            self.state().note(names.into_iter().zip(answers).collect());
            rounds.send_modify(|rounds| *rounds += 1);
            sleep_until(begun + EVERY).await;
            let mut state = self.state();
            if state.asked_at.is_none_or(|at| at.elapsed() > IDLE) {
                state.answers.clear();
                state.rounds = None;
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn peers(&self) -> Vec<Peer> {
        let of_source = |source: &Source| {
            let servers = source.upstream.servers().into_iter();
            servers.map(|server| Peer { server, source: source.clone() }).collect::<Vec<_>>()
        };
        let mut peers: Vec<Peer> = self.sources.iter().flat_map(of_source).take(PEERS_MAX).collect();
        peers.sort_by_key(Peer::name);
        peers.dedup_by_key(|peer| peer.name());
        peers
    }

    /// Keeps what a peer that no longer answers said last, with its time.
    fn note(&mut self, answers: BTreeMap<String, Answer>) {
        let mut before = std::mem::replace(&mut self.answers, answers);
        for (name, answer) in &mut self.answers {
            if let Some(earlier) = before.remove(name).filter(|_| answer.overview.is_none()) {
                *answer = Answer { error: answer.error.take(), ..earlier };
            }
        }
    }
}

fn origin_of(overview: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        origin: Option<String>,
    }
    serde_json::from_str::<Named>(overview.get()).ok()?.origin
}

fn json(peer: &Peer, answer: Option<&Answer>) -> PeerJson {
    PeerJson {
        name: peer.name(),
        this: false,
        url: peer.server.endpoint().to_string(),
        role: answer.and_then(|answer| answer.role.clone()),
        seen: answer.and_then(|answer| answer.seen).map(rfc3339::format),
        error: answer.map_or_else(|| Some("not asked yet".to_owned()), |answer| answer.error.clone()),
        overview: answer.and_then(|answer| answer.overview.clone()),
    }
}
