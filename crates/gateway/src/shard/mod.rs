//! The state of one core: its log, its types, and what its requests share. Nothing here is held over an await.

pub(crate) mod commit_trigger;
pub(crate) mod iterations;
pub(crate) mod refusal_queue;
pub(crate) mod rules;

use std::cell::{OnceCell, Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::Tokens;
use event::{EventId, IdGenerator};
use eventlog::{ContentHash, DeliveryWatch, RecordBuffer, Shard};
use http::StatusCode;
use limits::memory::Budgets;
use limits::{BLOCK_BYTES_MAX, SPARE_RECORDS_MAX};
use nats::{Bus, ConnectOptions};
use spans::{SpanQueue, Steps};
use tap::Taps;

use crate::admission::{Admission, Permit, wait_queue};
use crate::admission::{ClientBucket, FairSemaphore, ReadBudget, ReadPermit};
use crate::auth::Authenticator;
use crate::cached_clock::{CachedClock, milliseconds};
use crate::coarse_timer::CoarseTimer;
use crate::counters::{GatewayCounters, ShardCells};
use crate::event_types::{Slot, TypeCache};
use crate::filter_counts::FilterCounts;
use crate::ingest::{Envelope, Epoch, IngestParams, RecordBuilder, Workspace};
use crate::lookups::Lookups;
use crate::problem::Refused;
use crate::readiness::Readiness;
use crate::route::RouteName;
use http1::Transport;
use refusal_queue::RefusalQueue;
use rules::Rules;

/// Concurrent pieces of work in the worker pool of a shard, such as large payloads.
pub(crate) const OFFLOADED_MAX: usize = 1;

/// What all shards share.
#[derive(Clone)]
pub(crate) struct Shared {
    /// As they are at the start.
    pub(crate) rules: Arc<Rules>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) content_hash: ContentHash,
    pub(crate) read_budget: Arc<ReadBudget>,
    pub(crate) memory: Budgets,
    /// The delivery of events.
    pub(crate) outcomes: Arc<DeliveryWatch>,
    /// The logs of all shards: an original may be in any.
    pub(crate) shards: Arc<[Arc<Shard>]>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) taps: &'static Taps,
    pub(crate) spans: Option<&'static SpanQueue>,
    /// The names of the intakes whose ports are the listeners after the first.
    pub(crate) ports: Arc<[Arc<str>]>,
}

/// What the requests of a shard use.
pub(crate) struct ShardContext {
    index: usize,
    pub(crate) log: Arc<Shard>,
    pub(crate) shared: Shared,
    rules: RefCell<Arc<Rules>>,
    pub(crate) authenticator: Authenticator,
    types: RefCell<TypeCache>,
    pub(crate) clock: Arc<CachedClock>,
    pub(crate) timer: Rc<CoarseTimer>,
    ids: RefCell<IdGenerator>,
    workspace: RefCell<Workspace>,
    /// Permits for the worker pool.
    pub(crate) pool: FairSemaphore,
    spare_records: RefCell<Vec<RecordBuffer>>,
    /// Rejected events that are to be stored.
    pub(crate) refusals: RefusalQueue,
    /// Events that are looked up by their ids.
    pub(crate) lookups: Lookups,
    pub(crate) transport: Rc<Transport>,
    /// The connection for bridges, if there are servers for one.
    pub(crate) bus: OnceCell<Bus>,
}

impl ShardContext {
    /// The steps of a request, if it is sampled.
    pub(crate) fn steps(&self, envelope: &Envelope) -> Option<Steps<'static>> {
        let trace = envelope.trace.filter(|trace| trace.is_sampled)?;
        Some(Steps::new(self.shared.spans?, trace, clock::unix_microseconds()))
    }

    pub(crate) fn new(
        index: usize,
        log: Arc<Shard>,
        shared: Shared,
        clock: Arc<CachedClock>,
        timer: CoarseTimer,
        transport: Rc<Transport>,
        seed: u64,
    ) -> Self {
        let (rules, timer) = (shared.rules.clone(), Rc::new(timer));
        let lookups = Lookups::new(shared.read_budget.clone(), timer.clone(), clock.clone());
        transport.set_idle_timeout(rules.idle_timeout);
        Self {
            index,
            log,
            authenticator: Authenticator::new(shared.tokens.clone(), rules.demand, rules.read_demand),
            types: RefCell::new(TypeCache::new(rules.types.clone())),
            rules: RefCell::new(rules),
            shared,
            clock,
            timer,
            ids: RefCell::new(IdGenerator::new(seed)),
            workspace: RefCell::default(),
            pool: FairSemaphore::new(OFFLOADED_MAX),
            spare_records: RefCell::default(),
            refusals: RefusalQueue::default(),
            lookups,
            transport,
            bus: OnceCell::new(),
        }
    }

    /// Connects to the bus, in tasks of this shard's runtime.
    pub(crate) fn connect(&self, options: ConnectOptions) {
        self.bus.get_or_init(|| Bus::start(options));
        // Metrics show a bus that has never been reached.
        self.cells().bus_connected.get_or_init(AtomicBool::default);
    }

    /// A tick has passed.
    pub(crate) fn tick(&self) {
        if let (Some(bus), Some(connected)) = (self.bus.get(), self.cells().bus_connected.get()) {
            connected.store(bus.is_connected(), Ordering::Relaxed);
        }
        self.transport.tick();
        self.spare_records.borrow_mut().pop();
        self.lookups.tick();
    }

    /// Applies other rules. Requests that have begun keep the old ones about proxies, web pages and tokens.
    pub(crate) fn apply(&self, rules: Arc<Rules>) {
        self.types().renew(rules.types.clone());
        self.authenticator.set_demands(rules.demand, rules.read_demand);
        self.transport.set_idle_timeout(rules.idle_timeout);
        self.rules.replace(rules);
    }

    pub(crate) fn connection_closed(&self) {
        self.shared.admission.connection_closed(self.index);
    }

    pub(crate) fn rules(&self) -> Ref<'_, Arc<Rules>> {
        self.rules.borrow()
    }

    /// How many commits all shards have rejected, because the disk had no room.
    pub(crate) fn refused_commits(&self) -> u64 {
        Epoch::Of(&self.shared.shards).refused_commits()
    }

    /// Events that transforms have dropped.
    pub(crate) fn filters(&self) -> &FilterCounts {
        &self.shared.counters.filters
    }

    pub(crate) fn cells(&self) -> &ShardCells {
        self.shared.counters.shard(self.index)
    }

    pub(crate) fn types(&self) -> RefMut<'_, TypeCache> {
        self.types.borrow_mut()
    }

    /// Buffers of the ingest pipeline.
    pub(crate) fn workspace(&self) -> RefMut<'_, Workspace> {
        self.workspace.borrow_mut()
    }

    /// Memory for the records of a batch.
    pub(crate) fn spare_records(&self) -> RecordBuffer {
        self.spare_records.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back the memory of records that are in the log, or never will be.
    pub(crate) fn give_back_records(&self, records: RecordBuffer) {
        let mut spare = self.spare_records.borrow_mut();
        if spare.len() < SPARE_RECORDS_MAX && records.capacity() <= self.shared.memory.commit_group_bytes {
            spare.push(records.emptied());
        }
    }

    /// The client of a request.
    pub(crate) fn client(&self, envelope: &Envelope) -> ClientBucket {
        self.shared.admission.bucket(&envelope.source, envelope.client)
    }

    pub(crate) fn permit(&self, client: ClientBucket) -> Permit<'_> {
        self.shared.admission.permit(self.index, client, self.clock.elapsed().as_secs())
    }

    /// A permit for a batch, whose length is known or not, immediately or when others are done.
    ///
    /// # Errors
    /// There was no room in time.
    pub(crate) async fn batch_permit(
        &self,
        client: ClientBucket,
        announced: Option<usize>,
    ) -> Result<Permit<'_>, Refused> {
        let admission = &self.shared.admission;
        let try_admit = || admission.batch_permit(self.index, client, announced, self.clock.elapsed().as_secs());
        wait_queue::wait(admission.waiting(), client, &self.timer, try_admit).await
    }

    /// A permit for what a batch needs in addition to its body. The batch has begun, so it continues regardless of its client's others.
    ///
    /// # Errors
    /// Too many bytes are in flight.
    pub(crate) fn further_permit(&self, client: ClientBucket) -> Result<Permit<'_>, Refused> {
        self.shared.admission.batch_permit(self.index, client, Some(0), self.clock.elapsed().as_secs())
    }

    /// A permit for a read, immediately or when others are done.
    ///
    /// # Errors
    /// There was no room in time.
    pub(crate) async fn read_permit(&self, bytes: usize, client: ClientBucket) -> Result<ReadPermit, Refused> {
        let budget = &self.shared.read_budget;
        wait_queue::wait(budget.waiting(), client, &self.timer, || budget.take(bytes, client)).await
    }

    /// Bytes that a batch may take, as a body.
    pub(crate) const fn batch_bytes_max(&self) -> usize {
        self.shared.memory.batch_bytes
    }

    /// Bytes that the records of a request may take.
    pub(crate) fn records_bytes_max(&self) -> usize {
        self.batch_bytes_max().min(BLOCK_BYTES_MAX)
    }

    pub(crate) fn new_id(&self, microseconds: i64) -> EventId {
        self.ids.borrow_mut().request(milliseconds(microseconds))
    }

    /// A builder for records that are all of the type at `slot`, unless each names its own.
    pub(crate) fn new_builder(
        &self,
        params: &IngestParams,
        slot: Option<Slot>,
        envelope: &Envelope,
        types: &TypeCache,
    ) -> RecordBuilder {
        let (generated, hash) = (self.new_id(envelope.received_at), self.shared.content_hash.clone());
        let mut builder = RecordBuilder::new(params, slot, envelope.clone(), types, generated, hash);
        builder.refused_commits = self.refused_commits();
        builder.bytes_max = self.records_bytes_max();
        builder.taps = self.shared.taps;
        builder
    }

    /// Counts the events that transforms have dropped. A duplicate batch has none.
    pub(crate) fn count_filtered(&self, builder: &RecordBuilder) {
        if builder.accepted > 0 {
            builder.filtered_by().for_each(|(type_name, by, count)| self.filters().add(type_name, by, count));
        }
    }

    /// Counts a request that began in the tick that began at `started`. Its time is measured from tick to tick.
    pub(crate) fn count(&self, route: RouteName, status: StatusCode, body_bytes: usize, started: Duration) {
        let cells = self.cells();
        let elapsed = self.clock.elapsed().saturating_sub(started);
        cells.answered(route, status, elapsed);
        cells.body_bytes.add(body_bytes as u64);
    }
}
