//! Accepts connections, also those of the ports of intakes, and hands each to the least loaded shard. It is also the shards' clock: their runtimes have no timers.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::command::{AcceptedSocket, ShardCommand};
use crate::admission::Admission;
use crate::counters::GatewayCounters;
use http1::{ConnectionPeer, TICK_PARTS, TickPart};
use net::connections::ConnectionLimiter;

/// Connections that wait to be accepted; the kernel allows at most its `somaxconn`. The client of one beyond it retries after a second.
/// With the 128 of the standard library most clients of a restarted server would have to, if all reconnect at the same time.
const BACKLOG: i32 = 4096;
/// Bytes of responses that the kernel buffers for one connection; it doubles this for its own bookkeeping. By default it buffers megabytes
/// for a client that reads nothing. Only the longest responses don't fit.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// The pause after an accept that failed because there is no memory, or no descriptor and none in reserve: some may be free by then.
const BACK_OFF: Duration = Duration::from_millis(50);
/// A shard with so many connections checks one part of them at a time. Otherwise all whose deadline has passed would be closed, and would
/// reconnect, in one moment, while others wait. A shard with fewer is woken once a second.
const MANY_CONNECTIONS: usize = 64;
/// A file that always exists.
const KEPT_BACK: &str = "/dev/null";

/// The listener's thread.
pub(crate) struct Listener {
    pub(crate) shards: Vec<UnboundedSender<ShardCommand>>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) limiter: Arc<ConnectionLimiter>,
    pub(crate) tick: Duration,
}

impl Listener {
    /// Accepts until `stop` is sent or dropped. `started` hears whether it could begin.
    pub(crate) fn run(
        self,
        listeners: Vec<std::net::TcpListener>,
        stop: oneshot::Receiver<()>,
        started: impl FnOnce(io::Result<()>),
    ) {
        let begin = || -> io::Result<(LocalRuntime, Vec<TcpListener>)> {
            let runtime =
                Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
            let listeners = {
                let _entered = runtime.enter();
                listeners.into_iter().map(begin_to_listen).collect::<io::Result<_>>()?
            };
            Ok((runtime, listeners))
        };
        match begin() {
            Ok((runtime, listeners)) => {
                started(Ok(()));
                let this = Rc::new(self);
                runtime.block_on(async {
                    tokio::task::spawn_local(this.clone().tick());
                    for (number, listener) in (0..).zip(listeners) {
                        tokio::task::spawn_local(this.clone().accept(number, listener));
                    }
                    // Sent or dropped, it means the same.
                    let _ = stop.await;
                });
            }
            Err(error) => started(Err(error)),
        }
    }

    /// Sends the shards their ticks.
    async fn tick(self: Rc<Self>) {
        let mut next = Instant::now();
        loop {
            let (many, few): (Vec<_>, Vec<_>) =
                (0..self.shards.len()).partition(|shard| self.admission.connections_of(*shard) >= MANY_CONNECTIONS);
            self.tell(&few, TickPart::All);
            let parts = if many.is_empty() { 1 } else { TICK_PARTS };
            for part in 0..parts {
                self.tell(&many, TickPart::Part(part));
                next += self.tick / parts;
                tokio::time::sleep_until(next).await;
            }
            // Missed ticks are skipped.
            next = next.max(Instant::now());
        }
    }

    fn tell(&self, shards: &[usize], part: TickPart) {
        for shard in shards {
            // A shard that has ended needs no clock.
            let _ = self.shards[*shard].send(ShardCommand::Tick(part));
        }
    }

    async fn accept(self: Rc<Self>, number: u16, listener: TcpListener) {
        let mut kept_back = File::open(KEPT_BACK).ok();
        // Connections beyond the limit wait in the kernel's queue.
        while let Some(slot) = self.limiter.free().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    self.counters.connections_accepted.add(1);
                    let client = peer.ip().to_canonical();
                    let Some(permit) = self.limiter.take(slot, client) else {
                        self.counters.connections_refused.add(1);
                        continue;
                    };
                    // A socket that can't be set up is closed: its peer sees it and tries again.
                    if let Ok(stream) = set_up(stream) {
                        let peer = ConnectionPeer { client, listener: number };
                        self.hand_over(AcceptedSocket { stream, peer, permit });
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(_) => {
                    self.counters.accept_errors.add(1);
                    if kept_back.take().is_none() || !close_one(&listener).await {
                        tokio::time::sleep(BACK_OFF).await;
                    }
                    // Another thread may have used it during this time. The next free descriptor becomes the reserve before a
                    // connection gets it: otherwise clients would wait in the queue instead of being rejected.
                    kept_back = keep_back().await;
                }
            }
        }
    }

    fn hand_over(&self, handed: AcceptedSocket) {
        let shard = self.admission.least_loaded();
        self.admission.connection_opened(shard);
        if self.shards[shard].send(ShardCommand::Open(handed)).is_err() {
            self.admission.connection_closed(shard);
        }
    }
}

/// Listens on a bound socket. Each connection has what the listener has.
fn begin_to_listen(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER_BYTES)?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// A descriptor in reserve, to be closed when no other is free.
async fn keep_back() -> Option<File> {
    loop {
        match File::open(KEPT_BACK) {
            Ok(file) => return Some(file),
            Err(error) if is_out_of_descriptors(&error) => tokio::time::sleep(BACK_OFF).await,
            Err(_) => return None,
        }
    }
}

/// Accepts a waiting connection with the descriptor of the reserve, and closes it: its client can immediately go elsewhere or retry later,
/// instead of waiting for hours. Returns whether there was one.
async fn close_one(listener: &TcpListener) -> bool {
    poll_fn(|context| Poll::Ready(matches!(listener.poll_accept(context), Poll::Ready(Ok(_))))).await
}

/// The socket, ready for another runtime.
fn set_up(stream: TcpStream) -> io::Result<std::net::TcpStream> {
    stream.set_nodelay(true)?;
    stream.into_std()
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// The peer left before its connection was accepted; the next one is there.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
