//! A store behind real writers: each sink of it reaches the store through a writer of its own, over HTTP and a proxy that can cut answers.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use access::{Demand, Tokens};
use event::EventId;
use objects::{ObjectRules, ObjectSink};
use sink::Sink;
use sink_remote::{
    Remote, RemoteConfig, RemoteObjects, RemoteObjectsConfig, RemoteStore, Spread, Upstream, UpstreamConfig, Writers,
};
use sink_testing::conformance::SinkHarness;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use writer::{Offered, Writer};

#[path = "../postgres_server/proxy.rs"]
#[allow(clippy::duplicate_mod, reason = "programs name their own proxy by other paths")]
mod proxy;

use proxy::Proxy;

/// Places at which the proxy cuts a writer's answer, and bytes between them.
const CUTS: usize = 6;
const CUT_STEP: usize = 40;

/// A writer on a thread of its own, until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    pub fn start(kind: &'static str, sink: Sink) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let offered = BTreeMap::from([("store".to_owned(), Offered::new(kind, BTreeMap::new(), sink))]);
                let writer = Writer::new(offered, Arc::new(Tokens::default()), Demand::WithTokens, true, None);
                let stop = async { drop(stopped.await) };
                Arc::new(writer).serve(listener, writer::CONNECTIONS_MAX, stop).await;
            });
        });
        Self { address: told.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the writer panicked");
        }
    }
}

/// A gateway's sink of the writer that listens there. Objects are made by these rules, if it is one of objects.
pub fn remote(address: SocketAddr, store: RemoteStore, reads: bool, rules: Option<ObjectRules>) -> Sink {
    let writers = Writers::Listed(vec![format!("http://{address}").parse().unwrap()]);
    let (name, spread) = ("back".into(), Spread::Lane);
    let config = UpstreamConfig { name, writers, sends_to_all: false, spread, token: None, ca: None };
    let (upstream, sink) = (Upstream::new(config), "store".into());
    let remote = RemoteConfig { upstream, server: None, sink, store, parts: BTreeMap::new(), reads };
    match rules {
        Some(rules) => Sink::new(ObjectSink::new(RemoteObjects::new(RemoteObjectsConfig { remote, rules }))),
        None => Sink::new(Remote::new(remote)),
    }
}

/// A subject whose store writers offer.
pub trait Offers: SinkHarness {
    /// The kind of store.
    const STORE: RemoteStore;
    /// Whether events can be read back from it.
    const READS: bool;

    /// What objects of the store are like, if it has any.
    fn rules(&self) -> Option<ObjectRules> {
        None
    }
}

/// The store of `S` behind writers.
pub struct Through<S> {
    subject: S,
    writers: Mutex<Vec<(Proxy, Running)>>,
}

/// What keeps the store or its writers from answering, until it is dropped.
pub enum Hindered<H> {
    Store { _hindrance: H },
    Writers { _cuts: Vec<proxy::Fault> },
}

impl<S: Offers> SinkHarness for Through<S> {
    const COMPARES: bool = S::COMPARES;
    const KNOWS_IDS: bool = S::KNOWS_IDS;
    const WITHHOLDS_ALL: bool = S::WITHHOLDS_ALL;
    const HAS_OWN_MARK: bool = S::HAS_OWN_MARK;
    const SHARES_FAULTS: bool = S::SHARES_FAULTS;
    type Fault = Hindered<S::Fault>;

    fn as_kept(payload: &[u8]) -> Vec<u8> {
        S::as_kept(payload)
    }

    async fn fresh() -> Self {
        Self { subject: S::fresh().await, writers: Mutex::default() }
    }

    fn sink(&self) -> Sink {
        let writer = Running::start(S::STORE.as_str(), self.subject.sink());
        let proxy = Proxy::to(writer.address);
        let sink = remote(proxy.address(), S::STORE, S::READS, self.subject.rules());
        self.writers.lock().unwrap().push((proxy, writer));
        sink
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.subject.rows().await
    }

    async fn poison(&self, id: EventId) {
        self.subject.poison(id).await;
    }

    async fn outage(&self, stage: usize) -> Option<Self::Fault> {
        // First what is the writers' own.
        let Some(stage) = stage.checked_sub(CUTS) else {
            let writers = self.writers.lock().unwrap();
            let cuts = writers.iter().map(|(proxy, _)| proxy.cut_after(stage * CUT_STEP)).collect();
            return Some(Hindered::Writers { _cuts: cuts });
        };
        Some(Hindered::Store { _hindrance: self.subject.outage(stage).await? })
    }

    async fn stall(&self) -> Self::Fault {
        Hindered::Store { _hindrance: self.subject.stall().await }
    }
}
