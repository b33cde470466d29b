//! A store after real writers: each sink of it reaches the store through its own writer, over HTTP and a proxy that can
//! cut answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use access::{Demand, Tokens};
use event::EventId;
use net::connections::ConnectionLimiter;
use objects::{ObjectFormat, ObjectSink};
use sink::Sink;
use sink_remote::{
    Remote, RemoteConfig, RemoteObjects, RemoteObjectsConfig, Spread, Upstream, UpstreamConfig, Writers,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use writer::{Offered, Writer};

use testkit::proxy::{self, Proxy};

use crate::conformance::SinkHarness;

/// Connections of a writer at a time.
const CONNECTIONS_MAX: usize = 256;
/// The number of positions at which the proxy cuts a writer's answer, and the bytes between them.
const CUTS: usize = 6;
const CUT_STEP: usize = 40;

/// A writer on a separate thread, until it is dropped.
pub struct Running {
    /// The address of its port.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    /// A writer that offers this sink by the name `store`.
    pub fn start(kind: &'static str, sink: Sink) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (address_sender, address_receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address_sender.send(listener.local_addr().unwrap()).unwrap();
                let offered = BTreeMap::from([("store".to_owned(), Offered::new(kind, BTreeMap::new(), sink))]);
                let writer = Writer::new(offered, Arc::new(Tokens::default()), Demand::WithTokens, true, None);
                let stop = async { drop(stopped.await) };
                Arc::new(writer).serve(listener, ConnectionLimiter::new(CONNECTIONS_MAX, CONNECTIONS_MAX), stop).await;
            });
        });
        Self { address: address_receiver.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
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

/// The description in a gateway's table of a writer's store.
#[derive(Clone, Debug, Default)]
pub struct RemoteStore {
    /// The name of its kind.
    pub kind: &'static str,
    /// Whether it keeps cursors.
    pub is_fenced: bool,
    /// Whether events are read back through the writer.
    pub reads: bool,
    /// The rules of objects, if it stores objects.
    pub rules: Option<ObjectFormat>,
}

/// A gateway's sink for the writer at this address.
pub fn remote(address: SocketAddr, store: RemoteStore) -> Sink {
    let RemoteStore { kind: store, is_fenced, reads, rules } = store;
    let writers = Writers::Listed(vec![format!("http://{address}").parse().unwrap()]);
    let (name, spread) = ("back".into(), Spread::Lane);
    let response_timeout = limits::RESPONSE_TIMEOUT;
    let config = UpstreamConfig { name, writers, sends_to_all: false, spread, token: None, ca: None, response_timeout };
    let (upstream, sink) = (Upstream::new(config), "store".into());
    let (parts, recognises_ids) = (BTreeMap::new(), false);
    let remote = RemoteConfig { upstream, server: None, sink, store, is_fenced, recognises_ids, parts, reads };
    match rules {
        Some(rules) => Sink::new(ObjectSink::new(RemoteObjects::new(RemoteObjectsConfig { remote, rules }))),
        None => Sink::new(Remote::new(remote)),
    }
}

/// A subject whose store writers offer.
pub trait Offers: SinkHarness {
    /// The name of its kind.
    const STORE: &'static str;
    /// Whether events can be read back from it.
    const READS: bool;

    /// The format of the store's objects, if it has any.
    fn rules(&self) -> Option<ObjectFormat> {
        None
    }
}

/// The store of `S` after writers.
pub struct Through<S> {
    subject: S,
    writers: Mutex<Vec<(Proxy, Running)>>,
}

/// A fault of the store or of its writers, until it is dropped.
pub enum Hindered<H> {
    /// The store doesn't answer.
    Store {
        /// The store's own fault.
        _hindrance: H,
    },
    /// The answers of writers are cut.
    Writers {
        /// A fault of each proxy.
        _cuts: Vec<proxy::FaultGuard>,
    },
}

impl<S: Offers> SinkHarness for Through<S> {
    const COMPARES: bool = S::COMPARES;
    const RECOGNISES_IDS: bool = S::RECOGNISES_IDS;
    const REJECTS: bool = S::REJECTS;
    const ALL_OR_NOTHING: bool = S::ALL_OR_NOTHING;
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
        let sink = self.subject.sink();
        let is_fenced = sink.capabilities().fenced;
        let writer = Running::start(S::STORE, sink);
        let proxy = Proxy::to(writer.address);
        let store = RemoteStore { kind: S::STORE, is_fenced, reads: S::READS, rules: self.subject.rules() };
        let sink = remote(proxy.address(), store);
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
        // The faults of the writers come first.
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
