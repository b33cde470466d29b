//! The gateway as a whole: its threads, from start to stop.

pub(crate) mod command;
pub(crate) mod control;
mod listener;
mod shard_thread;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use access::{Demand, Tokens};
use eventlog::EventLog;
use ipnet::IpNet;
use limits::memory::Budgets;
use limits::{ACK_TIMEOUT, CONNECTIONS_MAX, CONNECTIONS_PER_CLIENT_MAX, IDLE_TIMEOUT, IN_FLIGHT_BYTES_MAX};
use net::connections::ConnectionLimiter;
use net::lingering_close::DrainLimiter;
use net::tls::ServerTls;
use spans::SpanQueue;
use tap::Taps;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use command::ShardCommand;
use control::{GatewayControl, rules};
use listener::Listener;

use nats::ConnectOptions;

use crate::admission::ReadBudget;
use crate::admission::{Admission, wait_queue};
use crate::bridge::BridgeRule;
use crate::counters::GatewayCounters;
use crate::event_types::{CurrentTypes, GatewayTypes};
use crate::intakes::{IntakeListener, IntakeRule};
use crate::object_readers::ObjectReaders;
use crate::readiness::Readiness;
use crate::shard::Shared;
use http1::TickPart;

const TICK: Duration = Duration::from_secs(1);

/// The access to a gateway, and its limits; tests use small ones.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Bytes of bodies that have arrived and are not durable yet.
    pub in_flight_bytes_max: usize,
    /// The other memory budgets of the gateway.
    pub memory: Budgets,
    /// How long a batch waits for room among them before it is rejected; checked with each tick.
    pub batch_wait: Duration,
    /// Connections open at a time, at least one.
    pub connections_max: usize,
    /// Open connections of one client: of an IPv4 address, or of an IPv6 /64. Those beyond it are closed immediately.
    pub connections_per_client: usize,
    /// How often the deadlines of connections are checked; they are counted in ticks of this length. A second.
    pub tick: Duration,
    /// The origins whose web pages may post events, as browsers write them, or `*` for all.
    pub cors_origins: Vec<String>,
    /// The names, in addition to IP addresses and `localhost`, by which requests without a token may call this server; `*` for all. `None`
    /// allows every name, for a port that other machines reach.
    pub allowed_hosts: Option<Vec<String>>,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The tokens that are known.
    pub tokens: Arc<Tokens>,
    /// Which requests need one of them.
    pub demand: Demand,
    /// Which requests to read events need one.
    pub read_demand: Demand,
    /// The sinks whose objects can be read.
    pub objects: ObjectReaders,
    /// The servers of the bus, for bridges. It can't be changed while the gateway runs.
    pub bus: Option<ConnectOptions>,
    /// The bridges, in the order in which their paths are compared.
    pub bridges: Vec<BridgeRule>,
    /// The intakes of other protocols.
    pub intakes: Vec<IntakeRule>,
    /// How long a request with `Forebay-Ack: stored` waits at most; checked with each tick.
    pub ack_timeout: Duration,
    /// How long a connection may be idle between two requests, counted in ticks of a second.
    pub idle_timeout: Duration,
    /// Limits the connections that are drained after an early response.
    pub drains: Arc<DrainLimiter>,
    /// The certificates, if clients must use TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Those who watch events pass.
    pub taps: &'static Taps,
    /// The spans of sampled requests, if they are sent somewhere.
    pub spans: Option<&'static SpanQueue>,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            in_flight_bytes_max: IN_FLIGHT_BYTES_MAX,
            memory: Budgets::FULL,
            batch_wait: wait_queue::WAIT,
            connections_max: CONNECTIONS_MAX,
            connections_per_client: CONNECTIONS_PER_CLIENT_MAX,
            tick: TICK,
            cors_origins: Vec::new(),
            allowed_hosts: None,
            trusted_proxies: Vec::new(),
            tokens: Arc::default(),
            demand: Demand::WithTokens,
            read_demand: Demand::WithTokens,
            objects: ObjectReaders::default(),
            bus: None,
            bridges: Vec::new(),
            intakes: Vec::new(),
            ack_timeout: ACK_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            drains: Arc::default(),
            tls: None,
            taps: Taps::closed(),
            spans: None,
        }
    }
}

/// A running gateway. If it is dropped without [`Gateway::stop`], its threads run until the process ends.
pub struct Gateway {
    address: SocketAddr,
    counters: Arc<GatewayCounters>,
    readiness: Arc<Readiness>,
    control: GatewayControl,
    stop_listening: oneshot::Sender<()>,
    listener: JoinHandle<()>,
    shards: Vec<ShardThread>,
    ended: Receiver<()>,
    tick: Duration,
}

struct ShardThread {
    messages: UnboundedSender<ShardCommand>,
    thread: JoinHandle<()>,
}

impl Gateway {
    /// Accepts requests from `listener` and from the ports of intakes, and appends their events to `log`, with a thread for each of its
    /// shards.
    ///
    /// # Errors
    /// The operating system has no room for the threads, or the listener can't be used.
    pub fn start(
        listener: TcpListener,
        intakes: Vec<IntakeListener>,
        log: &EventLog,
        types: GatewayTypes,
        options: GatewayOptions,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let GatewayOptions { in_flight_bytes_max, memory, batch_wait, .. } = options;
        let shards_count = log.shards().len();
        let admission = Arc::new(Admission::new(shards_count, in_flight_bytes_max, memory.batch_bytes, batch_wait));
        let drains = options.drains.clone();
        let counters = GatewayCounters::new(shards_count, admission.clone(), drains, log.accepted().clone());
        let counters = Arc::new(counters);
        let read_budget = Arc::new(ReadBudget::new(&memory));
        let content_hash = log.content_hash();
        let outcomes = log.delivery_watch().clone();
        let shards: Arc<[_]> = log.shards().into();
        let readiness = Arc::new(Readiness::new(shards.clone()));
        counters.filters.show(&types);
        let rules = Arc::new(rules(types, &options, log.types(), &counters));
        let registry = CurrentTypes::new(rules.types.clone());
        let shared = Shared {
            rules,
            admission: admission.clone(),
            counters: counters.clone(),
            readiness: readiness.clone(),
            content_hash,
            read_budget: read_budget.clone(),
            memory,
            outcomes,
            shards,
            tokens: options.tokens.clone(),
            taps: options.taps,
            spans: options.spans,
            ports: intakes.iter().map(|own| own.intake.clone()).collect(),
        };
        let (end, ended) = channel();
        let shards = start_shards(log, &shared, (options.tls.as_ref(), options.bus.as_ref()), &end)?;

        let senders: Vec<_> = shards.iter().map(|shard| shard.messages.clone()).collect();
        let GatewayOptions { connections_max, connections_per_client, tick, .. } = options;
        let limiter = Arc::new(ConnectionLimiter::new(connections_max.max(1), connections_per_client.max(1)));
        let control = GatewayControl {
            shards: senders.clone(),
            limiter: limiter.clone(),
            types: log.types().clone(),
            counters: counters.clone(),
            read_budget,
            registry,
        };
        let listeners = [listener].into_iter().chain(intakes.into_iter().map(|own| own.listener)).collect();
        let accepting = Listener { shards: senders, admission, counters: counters.clone(), limiter, tick };
        let (stop_listening, stop) = oneshot::channel();
        let listener = start_thread("listener".to_owned(), move |started| accepting.run(listeners, stop, started))?;
        Ok(Self { address, counters, readiness, control, stop_listening, listener, shards, ended, tick })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Changes it while it runs.
    #[must_use]
    pub const fn control(&self) -> &GatewayControl {
        &self.control
    }

    /// What it has done.
    #[must_use]
    pub const fn counters(&self) -> &Arc<GatewayCounters> {
        &self.counters
    }

    /// Whether it can accept events.
    #[must_use]
    pub const fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// Makes `/readyz` report that clients should stop sending events here. Events that arrive are still accepted.
    pub fn announce_stop(&self) {
        self.readiness.stop();
    }

    /// Stops: accepts no new connections, closes idle ones, answers the requests in flight, and ends its threads. It drops what is still in
    /// flight at the deadline. The caller must close the log's shards.
    ///
    /// Returns whether all requests in flight were answered.
    pub fn stop(self, deadline: Instant) -> bool {
        self.announce_stop();
        // If the listener has already ended, that is fine.
        let _ = self.stop_listening.send(());
        let listener_ended = self.listener.join().is_ok();
        self.shards.iter().for_each(|shard| shard.send(ShardCommand::Finish));
        let mut left = self.shards.len();
        loop {
            let until_deadline = deadline.saturating_duration_since(Instant::now());
            if left == 0 || until_deadline.is_zero() {
                break;
            }
            match self.ended.recv_timeout(self.tick.min(until_deadline)) {
                Ok(()) => left -= 1,
                // The listener was the clock.
                Err(_) => self.shards.iter().for_each(|shard| shard.send(ShardCommand::Tick(TickPart::All))),
            }
        }
        self.shards.iter().for_each(|shard| shard.send(ShardCommand::Abort));
        let shards_ended =
            self.shards.into_iter().map(|shard| shard.thread.join().is_ok()).fold(true, |all, one| all & one);
        left == 0 && listener_ended && shards_ended
    }
}

impl ShardThread {
    /// A thread that has ended needs no command.
    fn send(&self, message: ShardCommand) {
        let _ = self.messages.send(message);
    }
}

/// Sends when it is dropped, also by a panic.
struct End(Sender<()>);

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn start_shards(
    log: &EventLog,
    shared: &Shared,
    (tls, bus): (Option<&Arc<ServerTls>>, Option<&ConnectOptions>),
    end: &Sender<()>,
) -> io::Result<Vec<ShardThread>> {
    let start = |(index, shard): (usize, &Arc<eventlog::Shard>)| {
        let (messages, receiver) = unbounded_channel();
        let (shard, shared, tls, bus, end) =
            (shard.clone(), shared.clone(), tls.cloned(), bus.cloned(), End(end.clone()));
        let thread = start_thread(format!("shard-{index}"), move |started| {
            let _end = end;
            shard_thread::run(index, &shard, shared, (tls, bus), receiver, started);
        })?;
        Ok(ShardThread { messages, thread })
    };
    log.shards().iter().enumerate().map(start).collect()
}

/// A thread calls this once to report whether it could begin.
type Started = Box<dyn FnOnce(io::Result<()>)>;

/// Starts a thread and waits until it reports whether it could begin.
fn start_thread(name: String, run: impl FnOnce(Started) + Send + 'static) -> io::Result<JoinHandle<()>> {
    let (sender, started) = channel();
    let thread = thread::Builder::new().name(name).spawn(move || {
        run(Box::new(move |result| {
            // The starter of the thread waits for this.
            let _ = sender.send(result);
        }));
    })?;
    let ended_early = || io::Error::other("BUG: a thread of the gateway ended before it started. Report this");
    started.recv().unwrap_or_else(|_| Err(ended_early()))?;
    Ok(thread)
}
