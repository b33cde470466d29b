//! `[bus.events]`: clients of the bus get stored events by their ids, as from a NATS micro service.
//!
//! It has a separate thread and connection, so these reads never delay requests, batches or lanes.

mod lookup;
mod service;

use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cli::errors::cannot;
use event::read::StoreReader;
use nats::{Bus, ConnectOptions, Subject};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::timeout;

use lookup::Lookups;
use service::Identity;
pub(crate) use service::answers;

/// Requests that wait at the stop get this long to be answered.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The whole stop, with the end of the connection.
const STOP_MAX: Duration = Duration::from_secs(10);

/// The readers of all sinks that can be read now. Cheap to clone: a reload changes those of all clones.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Mutex<Vec<Arc<dyn StoreReader>>>>);

impl Readers {
    /// These readers, in the order in which they are searched.
    pub(crate) fn new(readers: Vec<Arc<dyn StoreReader>>) -> Self {
        Self(Arc::new(Mutex::new(readers)))
    }

    /// Other readers from now on.
    pub(crate) fn show(&self, readers: Vec<Arc<dyn StoreReader>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = readers;
    }

    /// Those of this moment.
    pub(crate) fn current(&self) -> Vec<Arc<dyn StoreReader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The running service.
pub(crate) struct BusEvents {
    stops: oneshot::Sender<()>,
    /// Ends with the thread.
    ended: oneshot::Receiver<()>,
}

impl BusEvents {
    /// Starts the thread, if the configuration has `[bus.events]`. It answers as soon as the bus is connected.
    ///
    /// # Errors
    /// The thread or its runtime can't be created.
    pub(crate) fn start(bus: Option<&config::BusConfig>, readers: &Readers) -> anyhow::Result<Option<Self>> {
        let Some((bus, subject)) = bus.and_then(|bus| Some((bus, bus.events.clone()?))) else { return Ok(None) };
        let config::BusConfig { servers, credentials, ca, .. } = bus.clone();
        let options = ConnectOptions { servers, credentials, ca, name: "forebay events" };
        Self::spawn(options, subject, readers.clone()).map(Some).map_err(cannot("start the thread of [bus.events]"))
    }

    fn spawn(options: ConnectOptions, subject: Subject, readers: Readers) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let identity = Identity::new(&subject)?;
        let (stops, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let run = move || {
            let _end: oneshot::Sender<()> = end;
            block_on(&runtime, serve(options, subject, identity, readers, stopped));
        };
        thread::Builder::new().name("bus-events".into()).spawn(run)?;
        Ok(Self { stops, ended })
    }

    /// Leaves the queue group, answers the requests that wait, and ends the thread.
    pub(crate) async fn stop(self) {
        // A thread that has ended needs no message.
        let _ = self.stops.send(());
        let _ = timeout(STOP_MAX, self.ended).await;
    }
}

fn block_on(runtime: &Runtime, service: impl Future<Output = ()>) {
    LocalSet::new().block_on(runtime, service);
}

async fn serve(
    options: ConnectOptions,
    subject: Subject,
    identity: Identity,
    readers: Readers,
    stopped: oneshot::Receiver<()>,
) {
    let bus = Bus::start(options);
    let identity = Rc::new(identity);
    let mut requests = bus.subscribe(&subject, Some(service::QUEUE_GROUP));
    let mut about = JoinSet::new();
    for (verb, subject) in identity.subjects() {
        let (identity, bus, mut questions) = (identity.clone(), bus.clone(), bus.subscribe(&subject, None));
        about.spawn_local(async move {
            while let Some(question) = questions.next().await {
                if let Some(reply) = question.reply() {
                    // A client that gets no answer asks again.
                    let _ = bus.publish(reply, b"", identity.about(verb).as_bytes());
                }
            }
        });
    }
    let (lookups, mut answering) = Lookups::start(bus.clone(), identity.clone(), readers);
    // This is a task, so it runs each time before the task of the connection reads more than the queue has room for.
    let receiving = spawn_local(async move {
        let receive = async {
            while let Some(request) = requests.next().await {
                lookups.take(&request);
                identity.dropped(requests.dropped());
            }
        };
        tokio::select! {
            () = receive => {}
            _ = stopped => {}
        }
        drop(about);
        requests.drain().await;
        while let Some(request) = requests.next().await {
            lookups.take(&request);
        }
    });
    // It can't be cancelled.
    let _ = receiving.await;
    let _ = timeout(ANSWER_MAX, async { while answering.join_next().await.is_some() {} }).await;
    bus.close().await;
}
