//! How the memory of a process is divided. Each budget of [this crate](crate) is the maximum of a part on a machine
//! with enough memory. With less memory, all are scaled down by one factor until their sum fits.

use crate::{
    AGGREGATE_BYTES, AGGREGATE_BYTES_MIN, BLOCK_BYTES_MAX, COMMIT_GROUP_BYTES_MAX, CONNECTIONS_MAX, DEAD_LETTERS_MAX,
    DEAD_LETTERS_MIN, DECODER_BYTES, DELIVERY_BYTES_MAX, DELIVERY_RECORDS_MAX, DUPLICATE_WINDOW_BYTES, EVENT_BYTES_MAX,
    IN_FLIGHT_BYTES_MAX, OBJECT_CACHE_BYTES, OBJECT_CACHED_BYTES_MAX, OBJECT_KEPT_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX,
    READ_BYTES_MAX, READS_IN_FLIGHT_BYTES_MAX, REFUSED_BYTES_WAITING_MAX, SPARE_RECORDS_MAX, TAIL_CACHE_BYTES_MAX,
    WRITER_CONNECTIONS_MAX,
};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The memory of a process in addition to its budgets and to the memory that is measured after it has read its
/// configuration. It has pages of the program that must stay in memory, stacks, the kernel's buffers, and pages of
/// files that wait to be written.
pub const MEMORY_RESERVE_BYTES: usize = 9 * MIB;
/// The allocator's part: one in this many bytes is between pieces that are in use.
const FRAGMENTATION_PART: usize = 8;
/// The memory of a connection while its request's head is read. Its body counts as in flight.
const CONNECTION_BYTES: usize = 4 * KIB;
/// The memory of a record of a delivered batch in addition to its bytes.
const DELIVERY_RECORD_BYTES: usize = 128;
/// A lane's read-ahead buffer, its connections to the store, and the stacks of its threads.
const LANE_BYTES: usize = MIB;
/// An entry of the index of dead letters, with its share of the index's free entries.
pub const DEAD_LETTER_BYTES: usize = 20;
/// The least of the bytes in flight: a compressed event of full size, and its record.
const IN_FLIGHT_BYTES_MIN: usize = 2 * MIB;
/// The least of a batch: an event of full size, with its record.
const BATCH_MEMORY_BYTES_MIN: usize = EVENT_BYTES_MAX + 256 * KIB;
/// The least of pages that are read back: two, each with space for an event of full size.
const READS_BYTES_MIN: usize = 4 * EVENT_BYTES_MAX + 64 * KIB;

/// The parts of a configuration that use memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryParts {
    /// Shards.
    pub shards: usize,
    /// Sinks.
    pub sinks: usize,
    /// Those of them that keep objects in memory.
    pub object_sinks: usize,
    /// Those whose dead letters the configuration doesn't limit.
    pub dead_letter_sinks: usize,
    /// Aggregates without a memory setting.
    pub aggregates: usize,
    /// Whether objects are served, from a cache whose size isn't set.
    pub has_object_cache: bool,
    /// Connections, if the configuration limits them.
    pub connections: Option<usize>,
    /// Bytes of budgets that the configuration sets, and of parts that aren't scaled.
    pub fixed_bytes: usize,
}

/// The budgets of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of bodies and their records that aren't durable yet, over the whole process.
    pub in_flight_bytes: usize,
    /// Bytes that one request may take of it, as a body or as records.
    pub batch_bytes: usize,
    /// Bytes at which an open block is committed though more requests wait.
    pub commit_group_bytes: usize,
    /// The deduplication window.
    pub duplicate_window_bytes: usize,
    /// Blocks kept for delivery, of each shard.
    pub tail_cache_bytes: usize,
    /// Payload bytes of a delivered batch.
    pub delivery_bytes: usize,
    /// Records of a delivered batch.
    pub delivery_records: usize,
    /// Pages that are read back, over the whole process.
    pub reads_bytes: usize,
    /// Objects that are in memory for readers.
    pub object_cache_bytes: usize,
    /// Bytes of an object that a sink keeps.
    pub object_kept_bytes: usize,
    /// The same, of all objects of a sink.
    pub objects_kept_bytes: usize,
    /// The groups of an aggregate.
    pub aggregate_bytes: usize,
    /// Dead letters of a sink.
    pub dead_letters: usize,
    /// Connections on the intake port.
    pub connections: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::FULL
    }
}

/// The number of steps in which budgets are scaled.
const STEPS: usize = 1024;

/// This many steps of `most`, at least `least`.
const fn part(most: usize, least: usize, steps: usize) -> usize {
    let scaled = most / STEPS * steps + most % STEPS * steps / STEPS;
    if scaled < least { least } else { scaled }
}

impl Budgets {
    /// The budgets of a machine with enough memory.
    pub const FULL: Self = Self::scaled(STEPS);
    /// The smallest budgets: with less, no event of full size could be accepted.
    pub const LEAST: Self = Self::scaled(0);

    #[expect(clippy::cast_possible_truncation, reason = "the bytes of the object cache are far below 4 GiB")]
    const fn scaled(steps: usize) -> Self {
        Self {
            in_flight_bytes: part(IN_FLIGHT_BYTES_MAX, IN_FLIGHT_BYTES_MIN, steps),
            batch_bytes: part(IN_FLIGHT_BYTES_MAX, BATCH_MEMORY_BYTES_MIN, steps),
            commit_group_bytes: part(COMMIT_GROUP_BYTES_MAX, 256 * KIB, steps),
            duplicate_window_bytes: part(DUPLICATE_WINDOW_BYTES, 512 * KIB, steps),
            tail_cache_bytes: part(TAIL_CACHE_BYTES_MAX, 512 * KIB, steps),
            delivery_bytes: part(DELIVERY_BYTES_MAX, 256 * KIB, steps),
            delivery_records: part(DELIVERY_RECORDS_MAX, 500, steps),
            reads_bytes: part(READS_IN_FLIGHT_BYTES_MAX, READS_BYTES_MIN, steps),
            object_cache_bytes: part(OBJECT_CACHE_BYTES as usize, OBJECT_CACHED_BYTES_MAX as usize, steps),
            object_kept_bytes: part(OBJECT_KEPT_BYTES_MAX as usize, MIB, steps),
            objects_kept_bytes: part(OBJECTS_KEPT_BYTES_MAX, 2 * MIB, steps),
            aggregate_bytes: part(AGGREGATE_BYTES, AGGREGATE_BYTES_MIN, steps),
            dead_letters: part(DEAD_LETTERS_MAX, DEAD_LETTERS_MIN, steps),
            // Quadratic: few servers need most of them, and a server with little memory needs it for the bytes in
            // flight.
            connections: part(part(CONNECTIONS_MAX, 0, steps), 64, steps),
        }
    }

    /// The greatest budgets whose sum for these parts is at most `bytes`.
    ///
    /// # Errors
    /// Even the smallest budgets need more: the number of bytes.
    pub fn within(bytes: usize, parts: &MemoryParts) -> Result<Self, usize> {
        let fits = |steps: &usize| Self::scaled(*steps).sum(parts) <= bytes;
        (0..=STEPS).rev().find(fits).map(Self::scaled).ok_or_else(|| Self::LEAST.sum(parts))
    }

    /// The sum of all parts, each term at its maximum.
    #[must_use]
    pub const fn sum(&self, parts: &MemoryParts) -> usize {
        let connections = match parts.connections {
            Some(connections) => connections,
            None => self.connections,
        };
        let block = self.commit_group_bytes + self.batch_bytes;
        let sum = self.in_flight_bytes // bodies, and their records
            + parts.shards * block // the open block, while records are copied into it
            + parts.shards * SPARE_RECORDS_MAX * self.commit_group_bytes // buffers that wait for the records of the next batches
            + parts.shards * REFUSED_BYTES_WAITING_MAX // rejected events that wait to be stored
            + parts.shards * self.tail_cache_bytes // committed blocks, for lanes that keep up
            + parts.shards * parts.sinks * self.lane(block)
            + self.duplicate_window_bytes
            + self.reads_bytes // pages until clients have them
            + self.read_page_bytes() // a page as a store's driver has it, while its events are copied
            + if parts.has_object_cache { self.object_cache_bytes } else { 0 }
            + parts.object_sinks * self.objects_kept_bytes // objects in flight
            + parts.aggregates * self.aggregate_bytes
            + parts.dead_letter_sinks * self.dead_letters * DEAD_LETTER_BYTES
            + connections * CONNECTION_BYTES
            + parts.fixed_bytes;
        sum + sum / FRAGMENTATION_PART
    }

    /// The memory of a lane whose largest block has this many bytes.
    const fn lane(&self, block: usize) -> usize {
        let held = 2 * self.delivery_bytes;
        (if held > block { held } else { block }) // the blocks of a batch, or one that is larger
            + 2 * self.delivery_bytes // the driver's copies of the batch: rows, documents, a request
            + self.delivery_records * DELIVERY_RECORD_BYTES
            + LANE_BYTES
    }

    /// Bytes of a delivered batch's blocks.
    #[must_use]
    pub const fn delivery_held_bytes(&self) -> usize {
        2 * self.delivery_bytes
    }

    /// Bytes of a page that is read back.
    #[must_use]
    pub const fn read_page_bytes(&self) -> usize {
        let page = self.reads_bytes / 2;
        if page < READ_BYTES_MAX { page } else { READ_BYTES_MAX }
    }
}

/// Bytes of a batch in a writer for each byte of its frame: the frame, and the driver's copies of it (rows, documents, a request).
const BATCH_MEMORY_FACTOR: usize = 3;
/// The smallest record of a frame.
const FRAME_RECORD_BYTES_MIN: usize = 58;
/// Bytes of a page in a writer for each byte of its events: the store reader's copy, the values of a document, and its text.
const PAGE_MEMORY_FACTOR: usize = 3;
/// Bytes of a writer's connection between requests: buffers of its head, of an answer, and of TLS.
const WRITER_CONNECTION_BYTES: usize = 24 * KIB;
/// Bytes of a writer's store without batches: its connections and their buffers, or an embedded store's cache of pages.
const WRITER_STORE_BYTES: usize = 2 * MIB;
/// The maximum for the batches of all sinks of a writer, if each sink's share has room for a batch of full size.
const WRITER_BATCHES_BYTES_MAX: usize = BATCH_MEMORY_FACTOR * IN_FLIGHT_BYTES_MAX;
/// The maximum for the pages that gateways read through a writer.
const WRITER_READS_BYTES_MAX: usize = 2 * PAGE_MEMORY_FACTOR * READ_BYTES_MAX;
/// The least: a page with room for an event of full size.
const WRITER_READS_BYTES_MIN: usize = PAGE_MEMORY_FACTOR * 2 * EVENT_BYTES_MAX;
/// The least connections of a writer.
const WRITER_CONNECTIONS_MIN: usize = 64;

/// Bytes that a writer uses for a batch with a frame of this size.
#[must_use]
pub const fn batch_memory_bytes(frame_bytes: usize) -> usize {
    let records = frame_bytes / FRAME_RECORD_BYTES_MIN;
    let records = if records < DELIVERY_RECORDS_MAX { records } else { DELIVERY_RECORDS_MAX };
    BATCH_MEMORY_FACTOR * frame_bytes + records * DELIVERY_RECORD_BYTES
}

/// The parts of a writer's configuration that use memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterParts {
    /// Sinks. Each shard of a sharded sink is one.
    pub sinks: usize,
    /// Bytes of the largest frame.
    pub frame_bytes: usize,
    /// Bytes of the sinks that aren't scaled.
    pub fixed_bytes: usize,
}

/// The budgets of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterBudgets {
    /// Bytes of the batches of each sink that are being read or stored: see [`batch_memory_bytes`].
    pub sink_batches_bytes: usize,
    /// Bytes of the pages that are being read, of all sinks: see [`Self::page_memory_bytes`].
    pub reads_bytes: usize,
    /// Connections on the port for gateways.
    pub connections: usize,
}

impl WriterBudgets {
    /// Those of a writer with enough memory.
    #[must_use]
    pub const fn full(parts: &WriterParts) -> Self {
        Self::scaled(STEPS, parts)
    }

    const fn scaled(steps: usize, parts: &WriterParts) -> Self {
        let sinks = if parts.sinks == 0 { 1 } else { parts.sinks };
        Self {
            sink_batches_bytes: part(WRITER_BATCHES_BYTES_MAX / sinks, batch_memory_bytes(parts.frame_bytes), steps),
            reads_bytes: part(WRITER_READS_BYTES_MAX, WRITER_READS_BYTES_MIN, steps),
            connections: part(part(WRITER_CONNECTIONS_MAX, 0, steps), WRITER_CONNECTIONS_MIN, steps),
        }
    }

    /// The greatest budgets whose sum for these parts is at most `bytes`.
    ///
    /// # Errors
    /// Even the smallest budgets are larger: their bytes.
    pub fn within(bytes: usize, parts: &WriterParts) -> Result<Self, usize> {
        let fits = |budgets: &Self| budgets.sum(parts) <= bytes;
        let all = (0..=STEPS).rev().map(|steps| Self::scaled(steps, parts));
        all.into_iter().find(fits).ok_or_else(|| Self::least(parts).sum(parts))
    }

    /// The smallest budgets: with less the largest batch could not be accepted.
    #[must_use]
    pub const fn least(parts: &WriterParts) -> Self {
        Self::scaled(0, parts)
    }

    /// Bytes of all parts together, each term at its maximum.
    #[must_use]
    pub const fn sum(&self, parts: &WriterParts) -> usize {
        let sum = parts.sinks * (self.sink_batches_bytes + WRITER_STORE_BYTES)
            + self.reads_bytes
            + self.connections * WRITER_CONNECTION_BYTES
            + parts.fixed_bytes;
        sum + sum / FRAGMENTATION_PART
    }

    /// Bytes of the events of a page.
    #[must_use]
    pub const fn page_bytes(&self) -> usize {
        let page = self.reads_bytes / PAGE_MEMORY_FACTOR;
        if page < READ_BYTES_MAX { page } else { READ_BYTES_MAX }
    }

    /// The part of [`Self::reads_bytes`] that a page of this size uses.
    #[must_use]
    pub const fn page_memory_bytes(page_bytes: usize) -> usize {
        PAGE_MEMORY_FACTOR * page_bytes
    }
}

/// One shard with one sink.
const ONE: MemoryParts = MemoryParts {
    shards: 1,
    sinks: 1,
    object_sinks: 0,
    dead_letter_sinks: 1,
    aggregates: 0,
    has_object_cache: false,
    connections: None,
    fixed_bytes: 0,
};

const _: () =
    assert!(Budgets::FULL.batch_bytes >= BLOCK_BYTES_MAX, "with enough memory a batch is limited by its body");
const _: () = assert!(
    Budgets::LEAST.batch_bytes + DECODER_BYTES <= Budgets::LEAST.in_flight_bytes,
    "an event of full size is admitted, even a compressed one"
);
const _: () = assert!(
    2 * Budgets::FULL.commit_group_bytes <= Budgets::FULL.tail_cache_bytes,
    "a lane that keeps up reads from memory"
);
const _: () =
    assert!(2 * Budgets::LEAST.commit_group_bytes <= Budgets::LEAST.tail_cache_bytes, "with little memory too");
const _: () =
    assert!(EVENT_BYTES_MAX <= Budgets::LEAST.read_page_bytes() / 2, "a page has room for an event of full size");
const _: () = assert!(
    Budgets::LEAST.sum(&ONE) + MEMORY_RESERVE_BYTES <= 28 * MIB,
    "a container of 32 MiB accepts single events, with 4 MiB for the configuration"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_scale_with_the_available_memory() {
        let parts = MemoryParts { shards: 3, sinks: 4, object_sinks: 1, aggregates: 2, has_object_cache: true, ..ONE };
        let enough = Budgets::FULL.sum(&parts);
        assert_eq!(Budgets::within(enough, &parts), Ok(Budgets::FULL));
        assert_eq!(Budgets::within(usize::MAX, &parts), Ok(Budgets::FULL));
        for bytes in [enough - 1, enough / 2, enough / 7, Budgets::LEAST.sum(&parts)] {
            let budgets = Budgets::within(bytes, &parts).unwrap();
            assert!(budgets.sum(&parts) <= bytes, "{bytes}");
            assert!(budgets.in_flight_bytes < IN_FLIGHT_BYTES_MAX && budgets.batch_bytes <= budgets.in_flight_bytes);
            assert!(2 * budgets.object_kept_bytes <= budgets.objects_kept_bytes);
            assert!(2 * budgets.commit_group_bytes <= budgets.tail_cache_bytes);
            assert!(2 * EVENT_BYTES_MAX <= budgets.read_page_bytes());
        }
        assert_eq!(Budgets::within(1, &parts), Err(Budgets::LEAST.sum(&parts)));
    }

    #[test]
    fn budgets_of_a_writer_count_each_sink() {
        let parts = |sinks| WriterParts { sinks, frame_bytes: 7 * MIB, fixed_bytes: 0 };
        for sinks in [1, 3, 20] {
            let (full, least) = (WriterBudgets::full(&parts(sinks)), WriterBudgets::least(&parts(sinks)));
            let enough = full.sum(&parts(sinks));
            assert_eq!(WriterBudgets::within(enough, &parts(sinks)), Ok(full));
            let smallest = least.sum(&parts(sinks));
            for bytes in [enough - 1, enough.midpoint(smallest), smallest] {
                let budgets = WriterBudgets::within(bytes, &parts(sinks)).unwrap();
                assert!(budgets.sum(&parts(sinks)) <= bytes);
                assert!(budgets.sink_batches_bytes >= batch_memory_bytes(7 * MIB), "the largest batch is accepted");
                assert!(budgets.page_bytes() >= 2 * EVENT_BYTES_MAX, "an event of full size is read");
            }
            assert_eq!(WriterBudgets::within(smallest - 1, &parts(sinks)), Err(smallest));
        }
        assert!(WriterBudgets::least(&parts(3)).sum(&parts(3)) > 2 * WriterBudgets::least(&parts(1)).sum(&parts(1)));
    }

    #[test]
    fn configured_budgets_reduce_the_others() {
        let set = MemoryParts { fixed_bytes: 100 * MIB, connections: Some(10_000), ..ONE };
        let [without, with] = [ONE, set].map(|parts| Budgets::within(300 * MIB, &parts).unwrap());
        assert!(with.in_flight_bytes < without.in_flight_bytes);
        assert!(with.sum(&set) <= 300 * MIB);
    }
}
