//! The back-end's port: gateways send batches to it, and it writes them to its sinks. It keeps no progress: the gateway owns the lane, and
//! the store's cursor decides.
//!
//! `docs/writer-protocol.md` describes the protocol; [`sink_remote`] is the client.

mod answer;
mod connection;
mod door;
mod expected;
mod last_call;
mod objects;
mod parts;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use access::{Demand, Tokens};
use event::cells::Counter;
use event::limits::IN_FLIGHT_BYTES_MAX;
use net::draining::DrainLimiter;
use net::tls::ServerTls;
use sink::{Mark, Sink};
use sink_remote::frame::FRAME_BYTES_MAX;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

pub use last_call::LastCall;

use last_call::LastCallCell;

/// Connections at a time: one for each lane of each gateway, and twice that while lanes move.
pub const CONNECTIONS_MAX: usize = 4_096;
/// The pause after `accept` failed, for instance because the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A sink that gateways may use.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The kind of store, as configurations name it.
    pub kind: &'static str,
    /// Where and how it stores: see [`sink_remote::protocol::SinkInfo::parts`].
    pub parts: BTreeMap<String, String>,
    /// The driver.
    pub sink: Sink,
    /// The store's mark when it was last read.
    mark_seen: Arc<Mutex<Option<Mark>>>,
    /// Bytes of its frames that are being read or stored, in KiB: a store that hangs must not take the memory of other sinks.
    room: Arc<Semaphore>,
    last_call: LastCallCell,
}

impl Offered {
    /// This sink.
    #[must_use]
    pub fn new(kind: &'static str, parts: BTreeMap<String, String>, sink: Sink) -> Self {
        let room = Arc::new(Semaphore::new(room(1)));
        Self { kind, parts, sink, mark_seen: Arc::default(), room, last_call: LastCallCell::default() }
    }

    /// How the last call of the store ended, whichever gateway asked for it; none before the first.
    #[must_use]
    pub fn last_call(&self) -> Option<LastCall> {
        self.last_call.get()
    }
}

/// Counters of a writer.
#[derive(Debug, Default)]
pub struct WriterCounters {
    /// Batches that a store has accepted.
    pub batches: Counter,
    /// Records of these batches, also those that the store refused.
    pub records: Counter,
    /// Objects, and descriptions of objects, that a store has accepted.
    pub objects: Counter,
    /// Requests that were refused: bad frames, unknown sinks, tokens.
    pub refused: Counter,
    /// Calls that failed in a sink.
    pub failed: Counter,
}

/// The phases of a writer's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// It serves, and announces its stop.
    Draining,
    /// It closes each connection after its request in flight.
    Ending,
}

/// A writer.
pub struct Writer {
    offered: BTreeMap<String, Offered>,
    tokens: Arc<Tokens>,
    demand: Demand,
    is_loopback: bool,
    tls: Option<Arc<ServerTls>>,
    counters: WriterCounters,
    drains: Arc<DrainLimiter>,
    phase: watch::Sender<Phase>,
}

/// The share of the memory for frames that one of so many sinks has, in KiB: a batch of full size at least.
const fn room(sinks: usize) -> usize {
    let share = IN_FLIGHT_BYTES_MAX / UNIT / sinks;
    let least = FRAME_BYTES_MAX.div_ceil(UNIT);
    if share > least { share } else { least }
}

const _: () = assert!(FRAME_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "one batch of full size is always taken");
/// The unit of that budget, in bytes.
const UNIT: usize = 1024;

impl Writer {
    /// A writer that offers these sinks by name. `demand` says whether a request needs a token with the scope `deliver`. On loopback it
    /// accepts only this machine's names in the header Host.
    #[must_use]
    pub fn new(
        mut offered: BTreeMap<String, Offered>,
        tokens: Arc<Tokens>,
        demand: Demand,
        is_loopback: bool,
        tls: Option<Arc<ServerTls>>,
    ) -> Self {
        let share = room(offered.len().max(1));
        offered.values_mut().for_each(|sink| sink.room = Arc::new(Semaphore::new(share)));
        let phase = watch::Sender::new(Phase::Serving);
        let (counters, drains) = (WriterCounters::default(), Arc::default());
        Self { offered, tokens, demand, is_loopback, tls, counters, drains, phase }
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &WriterCounters {
        &self.counters
    }

    /// The limit of connections that are drained after an early response.
    #[must_use]
    pub const fn drains(&self) -> &Arc<DrainLimiter> {
        &self.drains
    }

    /// The sinks that it offers, by name.
    #[must_use]
    pub const fn offered(&self) -> &BTreeMap<String, Offered> {
        &self.offered
    }

    /// Serves until `stop` ends. Then the listener closes, each connection ends after its request in flight, whose response says that the
    /// writer drains, and the future ends when no request is left.
    ///
    /// More connections than `connections_max` wait until others end.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, connections_max: usize, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(connections_max));
        let mut stop = std::pin::pin!(stop);
        let accepting = async {
            loop {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                match accept(&listener).await {
                    Some(stream) => {
                        let writer = self.clone();
                        tokio::spawn(async move {
                            connection::serve(stream, &writer).await;
                            drop(place);
                        });
                    }
                    None => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            () = &mut stop => {}
        }
        drop(listener);
        self.drains.end();
        self.phase.send_replace(Phase::Ending);
        // Each connection releases its permit when it ends.
        let _ = places.acquire_many(u32::try_from(connections_max).unwrap_or(u32::MAX)).await;
    }

    /// Announces the stop: `/readyz` answers 503, and every response asks the gateway to use another writer. Requests are still served.
    pub fn announce_stop(&self) {
        self.phase.send_if_modified(|phase| {
            let is_news = *phase == Phase::Serving;
            if is_news {
                *phase = Phase::Draining;
            }
            is_news
        });
    }

    /// Whether the writer has announced its stop.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.phase.borrow() != Phase::Serving
    }
}

async fn accept(listener: &TcpListener) -> Option<tokio::net::TcpStream> {
    let accepted: io::Result<_> = listener.accept().await;
    let (stream, _) = accepted.ok()?;
    // Send small responses at once.
    let _ = stream.set_nodelay(true);
    Some(stream)
}
