//! The memory that each owner of the plan uses now.

use std::sync::Arc;

use aggregation::AggregateBoard;
use delivery::Delivery;
use eventlog::EventLog;
use gateway::GatewayControl;
use ledger::Ledger;
use limits::memory::{Budgets, DEAD_LETTER_BYTES};
use writer::Writer;

use crate::allocator;
use crate::object_registry::ObjectRegistry;
use admin_api::debug::{HeapJson, MemoryJson, OwnerJson};
use dead_letters::DeadLetterService;

/// The owners of memory in a process of one role. Cheap to clone.
#[derive(Clone)]
pub(crate) enum MemoryUse {
    Server(Arc<ServerMemory>),
    Writer(Arc<Writer>),
}

/// The owners of memory in a server.
pub(crate) struct ServerMemory {
    budgets: Budgets,
    log: Arc<EventLog>,
    gateway: GatewayControl,
    ledger: Arc<Ledger>,
    dead_letters: DeadLetterService,
    aggregates: AggregateBoard,
    objects: ObjectRegistry,
}

impl MemoryUse {
    pub(crate) fn of_server(
        budgets: Budgets,
        log: Arc<EventLog>,
        gateway: GatewayControl,
        delivery: &Delivery,
        objects: ObjectRegistry,
    ) -> Self {
        let (ledger, dead_letters) = (delivery.ledger().clone(), delivery.dead_letters().clone());
        let aggregates = delivery.aggregates().clone();
        Self::Server(Arc::new(ServerMemory { budgets, log, gateway, ledger, dead_letters, aggregates, objects }))
    }

    /// The memory of the process, and that of each owner.
    pub(crate) fn now(&self) -> MemoryJson {
        let owners = match self {
            Self::Server(server) => server.owners(),
            Self::Writer(writer) => writer.memory().into_iter().map(of_writer).collect(),
        };
        let heap = allocator::heap_figures()
            .map(|heap| HeapJson { used_bytes: heap.used_bytes as u64, free_bytes: heap.free_bytes as u64 });
        MemoryJson {
            resident_bytes: host::process_stats().resident_bytes,
            limit_bytes: host::memory_limit().map(|limit| limit.bytes),
            heap,
            owners,
        }
    }
}

fn of_writer(part: writer::MemoryPart) -> OwnerJson {
    let owner = part.sink.map_or_else(|| "reads".to_owned(), |sink| format!("batches of {sink}"));
    OwnerJson::new(owner, part.bytes, part.bytes_max)
}

impl ServerMemory {
    fn owners(&self) -> Vec<OwnerJson> {
        let (budgets, shards) = (&self.budgets, self.log.shards());
        let tail_cache = shards.iter().map(|shard| shard.tail_cache_bytes()).sum();
        let aggregates: Vec<_> = self.aggregates.aggregates().iter().map(|aggregate| aggregate.figures()).collect();
        let aggregate_bytes = aggregates.iter().map(|figures| figures.memory_bytes).sum();
        let aggregate_bytes_max = aggregates.iter().map(|figures| figures.memory_limit_bytes).sum();
        let queues = self.dead_letters.counters().len();
        let small = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        vec![
            OwnerJson::new("requests in flight", self.gateway.bytes_in_flight(), budgets.in_flight_bytes),
            OwnerJson::new("tail cache", tail_cache, budgets.tail_cache_bytes * shards.len()),
            OwnerJson::new("deduplication window", self.log.ids_bytes(), budgets.duplicate_window_bytes),
            OwnerJson::new("reads", self.gateway.read_bytes(), budgets.reads_bytes),
            OwnerJson::new("object cache", small(self.objects.bytes()), small(self.objects.bytes_max())),
            OwnerJson::new("aggregates", aggregate_bytes, aggregate_bytes_max),
            OwnerJson::new("dead letters", self.dead_letter_bytes(), queues * budgets.dead_letters * DEAD_LETTER_BYTES),
        ]
    }

    fn dead_letter_bytes(&self) -> usize {
        let rows = self.ledger.snapshot();
        let held =
            rows.iter().flat_map(|row| row.sinks.iter().map(|sink| self.dead_letters.held(&sink.sink, &row.type_name)));
        usize::try_from(held.sum::<u64>()).unwrap_or(usize::MAX).saturating_mul(DEAD_LETTER_BYTES)
    }
}
