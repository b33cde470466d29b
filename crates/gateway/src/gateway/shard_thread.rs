//! The thread of a shard: its runtime, and the loop that follows commands and opens connections.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use eventlog::Shard;
use nats::ConnectOptions;
use net::tls::ServerTls;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use super::command::{AcceptedSocket, LongRequests, ShardCommand};
use crate::cached_clock::CachedClock;
use crate::coarse_timer::CoarseTimer;
use crate::handlers::quarantine_task;
use crate::handlers::router::Router;
use crate::ingest::offload;
use crate::shard::commit_trigger::{CommitTrigger, commit_on_park};
use crate::shard::iterations::Iterations;
use crate::shard::{OFFLOADED_MAX, ShardContext, Shared};
use http1::{ConnectionState, OpenConnections, OpenRequest, Order, TickPart, Transport};
use net::connections::ConnectionPermit;

/// Threads for offloaded and for blocking work, such as a page of events, and how long they stay.
const BLOCKING_THREADS: usize = OFFLOADED_MAX + 1;
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(1);
/// How often a busy runtime polls its sockets: 61 to 256 measure the same.
const EVENT_INTERVAL: u32 = 61;

/// The loop of a shard.
struct ShardLoop {
    router: Router,
    connections: OpenConnections,
    /// The tick of the event loop in which the last tick was counted.
    last_tick: Cell<Duration>,
    /// Whether the tick counts that has begun.
    tick_counts: Cell<bool>,
    is_ending: Rc<Cell<bool>>,
    drained: Notify,
}

/// A connection that is open until this is dropped.
struct OpenConnection {
    shard_loop: Rc<ShardLoop>,
    /// Its number among the open connections.
    number: usize,
    _permit: ConnectionPermit,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shard_loop.closed(self.number);
    }
}

/// The runtime of a shard's thread.
///
/// # Errors
/// The operating system has no room for it.
fn runtime(iterations: &Iterations, clock: &Arc<CachedClock>) -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder
        .enable_io()
        .enable_time()
        .event_interval(EVENT_INTERVAL)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .on_thread_start(offload::lower_priority);
    commit_on_park(&mut builder, iterations, clock).build_local(LocalOptions::default())
}

/// Runs a shard until a command ends it and no connection is left. `started` receives whether it could begin.
pub(super) fn run(
    index: usize,
    log: &Arc<Shard>,
    shared: Shared,
    (tls, bus): (Option<Arc<ServerTls>>, Option<ConnectOptions>),
    commands: UnboundedReceiver<ShardCommand>,
    started: impl FnOnce(io::Result<()>),
) {
    let clock = Arc::new(CachedClock::new());
    let iterations = Iterations::new(index, log.clone(), shared.counters.clone());
    let begin = || Ok((runtime(&iterations, &clock)?, getrandom::u64()?));
    match begin() {
        Ok((runtime, seed)) => {
            started(Ok(()));
            // It is set once: the shard starts once.
            let _ = shared.counters.shard(index).runtime.set(runtime.handle().metrics());
            let is_ending = Rc::new(Cell::new(false));
            let timer = CoarseTimer::new(clock.clone(), is_ending.clone());
            let transport = Rc::new(Transport::new(tls, shared.counters.drains().clone(), is_ending.clone()));
            let commit = CommitTrigger::new(iterations, clock.clone());
            let shard = ShardContext::new(index, log.clone(), shared, clock, timer, transport, seed);
            let shard_loop = ShardLoop {
                router: Router::new(shard, commit),
                connections: OpenConnections::default(),
                last_tick: Cell::new(Duration::MAX),
                tick_counts: Cell::new(true),
                is_ending,
                drained: Notify::new(),
            };
            runtime.block_on(Rc::new(shard_loop).run_commands(commands, bus));
        }
        Err(error) => started(Err(error)),
    }
}

impl ShardLoop {
    const fn shard(&self) -> &ShardContext {
        self.router.shard()
    }

    async fn run_commands(self: Rc<Self>, mut commands: UnboundedReceiver<ShardCommand>, bus: Option<ConnectOptions>) {
        bus.into_iter().for_each(|bus| self.shard().connect(bus));
        let log = self.shard().log.clone();
        tokio::task::spawn_local(async move { log.wake_completed().await });
        let this = self.clone();
        tokio::task::spawn_local(async move { quarantine_task::follow(this.shard()).await });
        self.execute(&mut commands).await;
        quarantine_task::finish(self.shard()).await;
        if let Some(bus) = self.shard().bus.get() {
            bus.close().await;
        }
    }

    /// Executes commands until one of them ends the loop and no connection is left.
    async fn execute(self: &Rc<Self>, commands: &mut UnboundedReceiver<ShardCommand>) {
        loop {
            let drained = async {
                loop {
                    if self.is_ending.get() && self.connections.is_empty() {
                        return;
                    }
                    self.drained.notified().await;
                }
            };
            let mut drained = pin!(drained);
            let command = poll_fn(|context| match drained.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => commands.poll_recv(context),
            });
            match command.await {
                Some(ShardCommand::Open(socket)) => self.open(socket),
                Some(ShardCommand::Tick(part)) => self.tick(part),
                Some(ShardCommand::Rules(rules, _applied)) => self.shard().apply(rules),
                Some(ShardCommand::Report(ticks, asked)) => drop(asked.send(self.long_requests(ticks))),
                Some(ShardCommand::Finish) => self.finish(Order::Finish),
                Some(ShardCommand::Abort) => self.finish(Order::Abort),
                None => return,
            }
        }
    }

    fn open(self: &Rc<Self>, socket: AcceptedSocket) {
        let AcceptedSocket { stream, peer, permit } = socket;
        match TcpStream::from_std(stream) {
            Ok(stream) if !self.is_ending.get() => {
                let connection = Rc::new(ConnectionState::new(peer, self.shard().transport.now()));
                let number = self.connections.add(connection.clone());
                let open = OpenConnection { shard_loop: self.clone(), number, _permit: permit };
                tokio::task::spawn_local(async move {
                    let open = open;
                    http1::serve(&open.shard_loop.router, connection, stream).await;
                });
            }
            // It is closed immediately: the server stops, or there is no room to watch it.
            _ => self.shard().connection_closed(),
        }
    }

    /// A connection is closed; the last one may be what the end waits for.
    fn closed(&self, number: usize) {
        self.connections.remove(number);
        self.shard().connection_closed();
        if self.is_ending.get() {
            self.drained.notify_one();
        }
    }

    /// Ticks that arrived while the shard was blocked count as one: the clients weren't slow.
    fn tick(&self, part: TickPart) {
        let shard = self.shard();
        if part.begins_tick() {
            let now = shard.clock.elapsed();
            self.tick_counts.set(self.last_tick.replace(now) != now);
            if self.tick_counts.get() {
                shard.tick();
            }
        }
        if !self.tick_counts.get() {
            return;
        }
        shard.timer.tick();
        let (now, idle_ticks) = (shard.transport.now(), shard.transport.idle_ticks());
        self.connections.for_each(part, |connection| match http1::order(connection, now, idle_ticks) {
            Order::Continue => {}
            order => connection.give(order),
        });
    }

    /// The requests that have been open for more than so many ticks.
    fn long_requests(&self, ticks: u32) -> LongRequests {
        let now = self.shard().transport.now();
        let mut long = LongRequests::default();
        self.connections.for_each(TickPart::All, |connection| {
            let Some((request, age)) = connection.open_request(now).filter(|(_, age)| *age > ticks) else { return };
            let count = match request {
                OpenRequest::Arriving => &mut long.arriving,
                OpenRequest::Processing => &mut long.processing,
                OpenRequest::Answering => &mut long.answering,
            };
            *count += 1;
            long.longest_seconds = long.longest_seconds.max(age);
        });
        long
    }

    fn finish(&self, order: Order) {
        self.is_ending.set(true);
        self.connections.for_each(TickPart::All, |connection| connection.give(order));
        self.drained.notify_one();
    }
}
