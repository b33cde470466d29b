//! The back-end's port: gateways hand batches to it, and it hands them to its sinks. It owns nothing: a lane's progress is its gateway's,
//! and the store's cursor is the truth.
//!
//! `docs/writer-protocol.md` describes what is said here; [`sink::remote`] is the other side.

mod answer;
mod connection;
mod door;
mod expected;
mod request;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use access::{Demand, Tokens};
use event::cells::Counter;
use event::limits::IN_FLIGHT_BYTES_MAX;
use sink::remote::frame::FRAME_BYTES_MAX;
use sink::{Mark, Sink};
use tls::ServerTls;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Connections at a time: one for each lane of each gateway, and as many again while they move.
pub const CONNECTIONS_MAX: usize = 4_096;
/// How long to wait after the listener failed, for instance for want of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A sink that gateways may use.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The kind of store, as configurations name it.
    pub kind: &'static str,
    /// What is stored where and how: see [`sink::remote::protocol::SinkInfo::parts`].
    pub parts: BTreeMap<String, String>,
    /// The driver.
    pub sink: Sink,
    /// The store's mark as it was last told.
    mark_seen: Arc<Mutex<Option<Mark>>>,
}

impl Offered {
    /// This sink.
    #[must_use]
    pub fn new(kind: &'static str, parts: BTreeMap<String, String>, sink: Sink) -> Self {
        Self { kind, parts, sink, mark_seen: Arc::default() }
    }
}

/// What a writer counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// Batches that the store has.
    pub batches: Counter,
    /// Records of these.
    pub records: Counter,
    /// Requests that were refused: bad frames, unknown sinks, tokens.
    pub refused: Counter,
    /// Calls that a sink failed.
    pub failed: Counter,
}

/// A writer.
pub struct Writer {
    offered: BTreeMap<String, Offered>,
    tokens: Arc<Tokens>,
    demand: Demand,
    is_loopback: bool,
    tls: Option<Arc<ServerTls>>,
    counters: Counters,
    /// Bytes of frames that are being read or stored, in KiB.
    room: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
}

const _: () = assert!(FRAME_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "one batch of full size is always taken");
/// Frames are counted in units of so many bytes.
const UNIT: usize = 1024;

impl Writer {
    /// A writer that offers these sinks by their names to whoever shows a token with the scope `deliver`, as far as one is needed. Where
    /// its listener is on loopback it answers to no names but this machine's.
    #[must_use]
    pub fn new(
        offered: BTreeMap<String, Offered>,
        tokens: Arc<Tokens>,
        demand: Demand,
        is_loopback: bool,
        tls: Option<Arc<ServerTls>>,
    ) -> Self {
        let room = Arc::new(Semaphore::new(IN_FLIGHT_BYTES_MAX / UNIT));
        let stopping = watch::Sender::new(false);
        Self { offered, tokens, demand, is_loopback, tls, counters: Counters::default(), room, stopping }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The sinks that it offers, by name.
    #[must_use]
    pub const fn offered(&self) -> &BTreeMap<String, Offered> {
        &self.offered
    }

    /// Serves until `stop` ends. Then each connection ends with the answer that it waits for, new ones are told that the writer drains,
    /// and the future ends when no request is left.
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
        self.stopping.send_replace(true);
        // Connections give their places back as they end.
        let _ = places.acquire_many(u32::try_from(connections_max).unwrap_or(u32::MAX)).await;
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

async fn accept(listener: &TcpListener) -> Option<tokio::net::TcpStream> {
    let accepted: io::Result<_> = listener.accept().await;
    let (stream, _) = accepted.ok()?;
    // Small answers are not held back.
    let _ = stream.set_nodelay(true);
    Some(stream)
}
