//! The back-end's port: gateways send batches to it, and it writes them to its sinks. It keeps no progress: the gateway owns the lane, and
//! the store's cursor decides.
//!
//! `docs/internals/writer-protocol.md` describes the protocol; `sink-remote` is the client.

mod answer;
mod auth;
mod callers;
mod connection;
mod frame_check;
mod objects;
mod reads;
mod request;
mod request_parts;
mod sink_health;
mod target_check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use access::{Demand, Tokens};
use event::Origin;
use limits::memory::{WriterBudgets, WriterParts};
use metrics::{Counter, Histogram};
use net::connections::ConnectionLimiter;
use net::lingering_close::DrainLimiter;
use net::newcomers::Newcomers;
use net::tls::ServerTls;
use sink::{Mark, Sink};
use spans::SpanQueue;
use tap::Taps;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use writer_protocol::frame::FRAME_BYTES_MAX;

pub use sink_health::LastCall;

use callers::Callers;
use reads::ReadRoom;
use sink_health::LastCallCell;

/// The pause after `accept` failed, for instance because the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A sink that gateways may use.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The kind of store, as configurations name it.
    pub kind: &'static str,
    /// Where and how it stores: see [`writer_protocol::SinkInfo::parts`].
    pub parts: BTreeMap<String, String>,
    /// The driver.
    pub sink: Sink,
    /// The store's mark when it was last read.
    mark_seen: Arc<Mutex<Option<Mark>>>,
    /// Memory for its batches that are being read or stored, in KiB: a store that hangs must not take the memory of other sinks.
    room: Arc<Semaphore>,
    last_call: LastCallCell,
    work: Arc<SinkWork>,
}

/// What a sink has done for all gateways.
#[derive(Debug, Default)]
pub struct SinkWork {
    /// Records of the batches that its store has accepted, also those that the store rejected.
    pub records: Counter,
    /// How long its store took for a batch, failed ones too.
    pub batch_time: Histogram,
    /// Batches that failed in the store.
    pub failed: Counter,
    callers: Callers,
}

impl SinkWork {
    /// The last gateways that sent batches, at most 64, each with the time of its last batch: microseconds since 1970.
    #[must_use]
    pub fn callers(&self) -> Vec<(Origin, i64)> {
        self.callers.list()
    }
}

impl Offered {
    /// This sink.
    #[must_use]
    pub fn new(kind: &'static str, parts: BTreeMap<String, String>, sink: Sink) -> Self {
        // `Writer::new` gives it its share.
        let room = Arc::new(Semaphore::new(0));
        let (last_call, work) = (LastCallCell::default(), Arc::default());
        Self { kind, parts, sink, mark_seen: Arc::default(), room, last_call, work }
    }

    /// The result of the store's last call, by any gateway; `None` before the first one.
    #[must_use]
    pub fn last_call(&self) -> Option<LastCall> {
        self.last_call.get()
    }

    /// What it has done.
    #[must_use]
    pub fn work(&self) -> &SinkWork {
        &self.work
    }
}

/// Counters of a writer.
#[derive(Debug, Default)]
pub struct WriterCounters {
    /// Batches that a store has accepted.
    pub batches: Counter,
    /// Records of these batches, also those that the store rejected.
    pub records: Counter,
    /// Objects, and descriptions of objects, that a store has accepted.
    pub objects: Counter,
    /// Rejected requests: bad frames, unknown sinks, tokens, other versions of the protocol.
    pub refused: Counter,
    /// Calls that failed in a sink.
    pub failed: Counter,
    /// Connections that were closed because others needed their places, or because no place was free.
    pub connections_closed: Counter,
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
    reads: ReadRoom,
    drains: Arc<DrainLimiter>,
    phase: watch::Sender<Phase>,
    taps: &'static Taps,
    spans: Option<&'static SpanQueue>,
    budgets: WriterBudgets,
}

/// A part of a writer's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPart {
    /// The sink whose batches it holds. `None`: pages that gateways read.
    pub sink: Option<String>,
    /// Bytes in use.
    pub bytes: usize,
    /// Bytes that it may use.
    pub bytes_max: usize,
}

/// The unit of memory budgets, in bytes.
const UNIT: usize = 1024;

impl Writer {
    /// The memory of a writer with these sinks; `fixed_bytes` are those of sinks that aren't scaled.
    #[must_use]
    pub const fn memory_parts(sinks: usize, fixed_bytes: usize) -> WriterParts {
        WriterParts { sinks, frame_bytes: FRAME_BYTES_MAX, fixed_bytes }
    }

    /// A writer that offers these sinks by name, without a memory limit. `demand` says whether a request needs a token with the
    /// scope `deliver`. On loopback it accepts only this machine's names in the header Host.
    #[must_use]
    pub fn new(
        offered: BTreeMap<String, Offered>,
        tokens: Arc<Tokens>,
        demand: Demand,
        is_loopback: bool,
        tls: Option<Arc<ServerTls>>,
    ) -> Self {
        let budgets = WriterBudgets::full(&Self::memory_parts(offered.len(), 0));
        let phase = watch::Sender::new(Phase::Serving);
        let (counters, drains) = (WriterCounters::default(), Arc::default());
        let reads = ReadRoom::new(&budgets);
        let taps = Taps::closed();
        Self { offered, tokens, demand, is_loopback, tls, counters, reads, drains, phase, taps, spans: None, budgets }
            .with_memory(&budgets)
    }

    /// The same writer with these budgets.
    #[must_use]
    pub fn with_memory(mut self, budgets: &WriterBudgets) -> Self {
        // Rounded up, so the largest batch fits.
        let share = budgets.sink_batches_bytes.div_ceil(UNIT);
        self.offered.values_mut().for_each(|sink| sink.room = Arc::new(Semaphore::new(share)));
        self.reads = ReadRoom::new(budgets);
        self.budgets = *budgets;
        self
    }

    /// The memory that is in use for batches of each sink, and for reads.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryPart> {
        let part = |sink, free: &Semaphore, bytes_max: usize| {
            let used = bytes_max.div_ceil(UNIT).saturating_sub(free.available_permits());
            MemoryPart { sink, bytes: used * UNIT, bytes_max }
        };
        let batches = self.budgets.sink_batches_bytes;
        let sinks = self.offered.iter().map(|(name, sink)| part(Some(name.clone()), &sink.room, batches));
        sinks.chain([part(None, self.reads.free(), self.budgets.reads_bytes)]).collect()
    }

    /// The same writer, which records the calls of its stores for sampled events.
    #[must_use]
    pub fn with_spans(self, spans: Option<&'static SpanQueue>) -> Self {
        Self { spans, ..self }
    }

    /// The same writer, whose stored events pass these taps.
    #[must_use]
    pub fn with_taps(self, taps: &'static Taps) -> Self {
        Self { taps, ..self }
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

    /// Serves until `stop` ends. Then the listener closes, and each connection ends after its request in flight, whose response says that the
    /// writer drains. The future ends when no request is left.
    ///
    /// A connection whose client hasn't sent a request with a valid token yet, if the port needs one, yields its place to the next one.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        limiter: ConnectionLimiter,
        stop: impl Future<Output = ()>,
    ) {
        let limiter = Arc::new(limiter);
        let newcomers = Newcomers::new(limiter.clone());
        let mut stop = std::pin::pin!(stop);
        let accepting = async {
            loop {
                match accept(&listener).await {
                    Some((stream, client)) => match newcomers.arrive(client).await {
                        Some((place, closed)) => {
                            let writer = self.clone();
                            tokio::spawn(async move { connection::serve(stream, place, closed, &writer).await });
                        }
                        None => self.counters.connections_closed.add(1),
                    },
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
        limiter.all_closed().await;
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

async fn accept(listener: &TcpListener) -> Option<(tokio::net::TcpStream, IpAddr)> {
    let accepted: io::Result<_> = listener.accept().await;
    let (stream, peer) = accepted.ok()?;
    // Send small responses immediately.
    let _ = stream.set_nodelay(true);
    Some((stream, peer.ip().to_canonical()))
}
