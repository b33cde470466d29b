//! A shard of the gateway: one thread, one runtime, one journal. Where the runtime would park, the turn has ended
//! and what it gathered is committed.

mod shared;

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use event::limits::{HEADER_BYTES_MAX, SPARE_RECORDS_MAX};
use event::{EventId, IdGenerator};
use eventlog::{ContentHash, Outcomes, Records, Shard};
use http::StatusCode;
use net::tls::ServerTls;
use pipeline::Values;
use pipeline::transform::Scratch;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::admission::Permit;
use crate::batch_room::Waiting;
use crate::beside;
use crate::counters::ShardCells;
use crate::encoder::Envelope;
use crate::fair_turns::FairTurns;
use crate::filter_counts::FilterCounts;
use crate::gatekeeper::Gatekeeper;
use crate::http1::connection::{Connection, Connections, Look, Order};
use crate::http1::deadlines;
use crate::http1::serving::{self, Open};
use crate::http1::target::Scheme;
use crate::patience::Patience;
use crate::problem::Refused;
use crate::read::ReadRoom;
use crate::readiness::Readiness;
use crate::route::RouteName;
use crate::shares::Sender;
use crate::turn_clock::{TurnClock, milliseconds};
use crate::type_cache::TypeCache;
pub(crate) use shared::{Common, Handed, Message, Rules};

/// Bytes that are read from a socket at once.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that are decoded of a body at once.
const DECODED_BYTES: usize = 64 * 1024;
/// Buffers that are kept for the next connection that needs one, and how large they may be: it may need it for long.
const SPARE_BUFFERS_MAX: usize = 16;
const SPARE_BUFFER_BYTES_MAX: usize = 4096;
/// Pieces of work beside a shard at a time: as large payloads are.
const WORK_BESIDE_MAX: usize = 1;
/// Threads for these and for what waits for others, as a page of events does, and how long they stay.
const BLOCKING_THREADS: usize = WORK_BESIDE_MAX + 1;
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(1);
/// How often a busy runtime looks at its sockets: 61 to 256 measure the same.
const EVENT_INTERVAL: u32 = 61;
/// A turn normally ends where nothing is left to do. One that lasts longer is committed in its midst.
const TURN_MAX: Duration = Duration::from_millis(4);
/// The same where only requests are left that their clients have sent ahead.
const TURN_MAX_BEFORE_NEXT: Duration = Duration::from_micros(500);
/// So many steps of connections are made before the time is looked at: each takes microseconds.
const STEPS_BETWEEN_LOOKS: u32 = 8;

const _: () = assert!(HEADER_BYTES_MAX <= READ_BYTES, "a head can be read at once");

/// A shard, seen by the requests on its thread.
pub(crate) struct Worker {
    index: usize,
    log: Arc<Shard>,
    gatekeeper: Gatekeeper,
    common: Common,
    rules: RefCell<Arc<Rules>>,
    clock: Arc<TurnClock>,
    types: RefCell<TypeCache>,
    ids: RefCell<IdGenerator>,
    scratch: RefCell<Box<[u8]>>,
    write_buffer: RefCell<Vec<u8>>,
    step_buffers: RefCell<Scratch>,
    values: RefCell<Values>,
    beside: FairTurns,
    decoded: RefCell<Vec<u8>>,
    spare_buffers: RefCell<Vec<Vec<u8>>>,
    spare_records: RefCell<Vec<Records>>,
    /// The value of `Date`.
    date: RefCell<String>,
    ticks: Cell<u32>,
    /// The turn in which the last tick was counted.
    last_tick: Cell<Duration>,
    /// Whether the tick counts that has begun.
    tick_counts: Cell<bool>,
    /// Steps of connections.
    steps: Cell<u32>,
    connections: Connections,
    patience: Patience,
    finishing: Cell<bool>,
    drained: Notify,
}

/// The runtime of a shard's thread.
///
/// # Errors
/// The operating system has no room for it.
fn runtime(log: &Arc<Shard>, clock: &Arc<TurnClock>) -> io::Result<LocalRuntime> {
    let (log, turn_clock) = (log.clone(), clock.clone());
    Builder::new_current_thread()
        .enable_io()
        .event_interval(EVENT_INTERVAL)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .on_thread_start(beside::give_way)
        .on_thread_park(move || log.end_of_turn())
        .on_thread_unpark(move || turn_clock.refresh())
        .build_local(LocalOptions::default())
}

/// Runs a shard until it is told to end and no connection is left. `started` hears whether it could begin.
pub(crate) fn run(
    index: usize,
    log: &Arc<Shard>,
    common: Common,
    messages: UnboundedReceiver<Message>,
    started: impl FnOnce(io::Result<()>),
) {
    let clock = Arc::new(TurnClock::new());
    let begin = || Ok((runtime(log, &clock)?, getrandom::u64()?));
    match begin() {
        Ok((runtime, seed)) => {
            started(Ok(()));
            let worker = Worker::new(index, log.clone(), common, clock.clone(), seed);
            runtime.block_on(Rc::new(worker).serve(messages));
        }
        Err(error) => started(Err(error)),
    }
}

impl Worker {
    fn new(index: usize, log: Arc<Shard>, common: Common, clock: Arc<TurnClock>, seed: u64) -> Self {
        Self {
            index,
            log,
            gatekeeper: Gatekeeper::new(common.tokens.clone(), common.rules.demand, common.rules.read_demand),
            types: RefCell::new(TypeCache::new(common.rules.types.clone())),
            rules: RefCell::new(common.rules.clone()),
            common,
            clock,
            ids: RefCell::new(IdGenerator::new(seed)),
            scratch: RefCell::new(vec![0; READ_BYTES].into()),
            write_buffer: RefCell::default(),
            step_buffers: RefCell::default(),
            values: RefCell::default(),
            beside: FairTurns::new(WORK_BESIDE_MAX),
            decoded: RefCell::default(),
            spare_buffers: RefCell::default(),
            spare_records: RefCell::default(),
            date: RefCell::new(http_date()),
            ticks: Cell::new(0),
            last_tick: Cell::new(Duration::MAX),
            tick_counts: Cell::new(true),
            steps: Cell::new(0),
            connections: Connections::default(),
            patience: Patience::default(),
            finishing: Cell::new(false),
            drained: Notify::new(),
        }
    }

    async fn serve(self: Rc<Self>, mut messages: UnboundedReceiver<Message>) {
        let log = self.log.clone();
        tokio::task::spawn_local(async move { log.wake_returned().await });
        loop {
            let drained = async {
                loop {
                    if self.finishing.get() && self.connections.is_empty() {
                        return;
                    }
                    self.drained.notified().await;
                }
            };
            let mut drained = pin!(drained);
            let message = poll_fn(|context| match drained.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => messages.poll_recv(context),
            });
            match message.await {
                Some(Message::Open(handed)) => self.open(handed),
                Some(Message::Tick(look)) => self.tick(look),
                Some(Message::Rules(rules, _told)) => self.follow(rules),
                Some(Message::Finish) => self.finish(Order::Finish),
                Some(Message::Abort) => self.finish(Order::Abort),
                None => return,
            }
        }
    }

    fn open(self: &Rc<Self>, handed: Handed) {
        let Handed { stream, client, place } = handed;
        match TcpStream::from_std(stream) {
            Ok(stream) if !self.finishing.get() => {
                let connection = Rc::new(Connection::new(client, self.now()));
                let number = self.connections.add(connection.clone());
                let open = Open { worker: self.clone(), number, _place: place };
                let serving = serving::serve(self.clone(), connection, stream);
                tokio::task::spawn_local(async move {
                    let _open = open;
                    serving.await;
                });
            }
            // It is closed at once: the server stops, or there is no room to watch it.
            _ => self.common.admission.connection_closed(self.index),
        }
    }

    /// A connection is closed; the last one may be what the end waits for.
    pub(crate) fn closed(&self, number: usize) {
        self.connections.remove(number);
        self.common.admission.connection_closed(self.index);
        if self.finishing.get() {
            self.drained.notify_one();
        }
    }

    /// Ticks that came while the shard stood still count as one: it wasn't the clients who were slow.
    fn tick(&self, look: Look) {
        let turn = self.clock.elapsed();
        if look.begins_tick() {
            self.tick_counts.set(self.last_tick.replace(turn) != turn);
            if self.tick_counts.get() {
                self.ticks.set(self.now().saturating_add(1));
                *self.date.borrow_mut() = http_date();
                self.spare_records.borrow_mut().pop();
            }
        }
        if !self.tick_counts.get() {
            return;
        }
        self.patience.tick(turn);
        self.connections.for_each(look, |connection| match deadlines::order(connection, self.now()) {
            Order::GoOn => {}
            order => connection.give(order),
        });
    }

    /// Ends a long turn: while there is always something to do the runtime never parks, and whoever has sent an event would wait
    /// for all the others. To be called with each step of a connection.
    pub(crate) fn step(&self) {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_BETWEEN_LOOKS) {
            self.end_turn_after(TURN_MAX);
        }
    }

    /// Lets all others have a turn before the next request of a connection, which is here already.
    pub(crate) async fn let_others_go_first(&self) {
        self.end_turn_after(TURN_MAX_BEFORE_NEXT);
        tokio::task::yield_now().await;
    }

    /// Commits what the turn has gathered, if it has lasted for so long.
    fn end_turn_after(&self, longest: Duration) {
        if self.clock.is_over(longest) {
            self.log.end_of_turn();
            self.clock.refresh();
        }
    }

    /// Requests that have begun keep what they were told of proxies, web pages and tokens.
    fn follow(&self, rules: Arc<Rules>) {
        self.types().renew(rules.types.clone());
        self.gatekeeper.set_demands(rules.demand, rules.read_demand);
        self.rules.replace(rules);
    }

    fn finish(&self, order: Order) {
        self.finishing.set(true);
        self.connections.for_each(Look::All, |connection| connection.give(order));
        self.drained.notify_one();
    }

    /// Ticks since the start.
    pub(crate) fn now(&self) -> u32 {
        self.ticks.get()
    }

    pub(crate) fn log(&self) -> &Arc<Shard> {
        &self.log
    }

    pub(crate) fn clock(&self) -> &TurnClock {
        &self.clock
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.common.readiness
    }

    /// Who lets requests in.
    pub(crate) const fn gatekeeper(&self) -> &Gatekeeper {
        &self.gatekeeper
    }

    /// What holds now. It is never held over an await.
    pub(crate) fn rules(&self) -> Ref<'_, Arc<Rules>> {
        self.rules.borrow()
    }

    pub(crate) fn tls(&self) -> Option<&ServerTls> {
        self.common.tls.as_deref()
    }

    /// What the URLs of this port begin with.
    pub(crate) const fn scheme(&self) -> Scheme {
        if self.common.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }

    /// How many commits the disk had no room for, of all shards.
    pub(crate) fn refused_commits(&self) -> u64 {
        self.shards().iter().map(|shard| shard.counters().commits_refused.get()).sum()
    }

    /// Events that steps took out.
    pub(crate) fn filters(&self) -> &FilterCounts {
        &self.common.counters.filters
    }

    pub(crate) fn cells(&self) -> &ShardCells {
        self.common.counters.shard(self.index)
    }

    pub(crate) fn types(&self) -> RefMut<'_, TypeCache> {
        self.types.borrow_mut()
    }

    /// Where bytes are read to before they are looked at. It is never held over an await.
    pub(crate) fn scratch(&self) -> RefMut<'_, Box<[u8]>> {
        self.scratch.borrow_mut()
    }

    /// Where answers are written to before they are sent. It is never held over an await.
    pub(crate) fn write_buffer(&self) -> RefMut<'_, Vec<u8>> {
        self.write_buffer.borrow_mut()
    }

    /// Where payloads are taken through steps. It is never held over an await.
    pub(crate) fn step_buffers(&self) -> RefMut<'_, Scratch> {
        self.step_buffers.borrow_mut()
    }

    /// Where the values of payloads are read to. It is never held over an await.
    pub(crate) fn values(&self) -> RefMut<'_, Values> {
        self.values.borrow_mut()
    }

    /// Who works beside the shard.
    pub(crate) const fn beside(&self) -> &FairTurns {
        &self.beside
    }

    /// Where bodies are decoded to, piece by piece. It is never held over an await, and takes memory from the first
    /// encoded body on.
    pub(crate) fn decoded(&self) -> RefMut<'_, Vec<u8>> {
        let mut decoded = self.decoded.borrow_mut();
        decoded.resize(DECODED_BYTES, 0);
        decoded
    }

    /// An empty buffer for what a connection must hold for a while.
    pub(crate) fn spare_buffer(&self) -> Vec<u8> {
        self.spare_buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a buffer that is empty again. A large one, and one too many, is freed.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut spare = self.spare_buffers.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BUFFER_BYTES_MAX {
            spare.push(buffer);
        }
    }

    /// Memory for the records of a batch.
    pub(crate) fn spare_records(&self) -> Records {
        self.spare_records.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back the memory of records that are in the log, or never will be.
    pub(crate) fn give_back_records(&self, records: Records) {
        let mut spare = self.spare_records.borrow_mut();
        if spare.len() < SPARE_RECORDS_MAX && records.capacity() <= self.common.memory.turn_bytes {
            spare.push(records.emptied());
        }
    }

    /// The value of `Date`, at most a tick old.
    pub(crate) fn date(&self) -> Ref<'_, String> {
        self.date.borrow()
    }

    /// Who waits for events to be stored.
    pub(crate) const fn patience(&self) -> &Patience {
        &self.patience
    }

    pub(crate) fn outcomes(&self) -> &Arc<Outcomes> {
        &self.common.outcomes
    }

    /// The logs of all shards.
    pub(crate) fn shards(&self) -> &[Arc<Shard>] {
        &self.common.shards
    }

    /// Whether connections are to be closed after what is in flight.
    pub(crate) fn is_finishing(&self) -> bool {
        self.finishing.get()
    }

    /// A hash for the bytes that come with an id.
    pub(crate) fn content_hash(&self) -> ContentHash {
        self.common.content_hash.clone()
    }

    /// Who sends what stands in this envelope.
    pub(crate) fn sender(&self, envelope: &Envelope) -> Sender {
        self.common.admission.sender(&envelope.source, envelope.client)
    }

    pub(crate) fn permit(&self, sender: Sender) -> Permit<'_> {
        self.common.admission.permit(self.index, sender, self.clock.elapsed().as_secs())
    }

    /// The batches that wait for room.
    pub(crate) fn batches_waiting(&self) -> &Waiting {
        self.common.admission.waiting()
    }

    /// For a batch, whose length is known or not.
    pub(crate) fn batch_permit(&self, sender: Sender, announced: Option<usize>) -> Result<Permit<'_>, Refused> {
        self.common.admission.batch_permit(self.index, sender, announced, self.clock.elapsed().as_secs())
    }

    /// Bytes that a batch may take, as a body or as records.
    pub(crate) const fn batch_bytes_max(&self) -> usize {
        self.common.memory.batch_bytes
    }

    /// For pages that are read back.
    pub(crate) fn read_room(&self) -> &Arc<ReadRoom> {
        &self.common.read_room
    }

    pub(crate) fn new_id(&self, microseconds: i64) -> EventId {
        self.ids.borrow_mut().request(milliseconds(microseconds))
    }

    /// Counts a request that began in the turn that began at `started`. What it took is measured from turn to turn.
    pub(crate) fn answered(&self, route: RouteName, status: StatusCode, body_bytes: usize, started: Duration) {
        let cells = self.cells();
        let elapsed = self.clock.elapsed().saturating_sub(started);
        cells.answered(route, status);
        match route {
            RouteName::Event => cells.event_time.record(elapsed),
            RouteName::Batch => cells.batch_time.record(elapsed),
            _ => {}
        }
        cells.body_bytes.add(body_bytes as u64);
    }
}

fn http_date() -> String {
    httpdate::fmt_http_date(clock::now())
}
