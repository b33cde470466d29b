//! Every limit of Forebay, with its reason. The asserts at the end relate them, so a changed limit can't contradict
//! another.

pub mod memory;
#[cfg(test)]
mod reference;

use std::time::Duration;

/// Bytes of a single payload. One event is one row or document: more is a file.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a batch body as it arrives.
pub const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Records of a batch: they share one block, and one response.
pub const BATCH_RECORDS_MAX: usize = 100_000;
/// Rejections that the response to a batch lists; the others are counted.
pub const REFUSALS_LISTED_MAX: usize = 1_000;
/// About how many bytes of rejected events wait in a shard to be stored as events of another type. Events beyond it
/// aren't stored.
pub const REFUSED_BYTES_WAITING_MAX: usize = 256 * 1024;
/// Nested arrays and objects. The stores' JSON libraries accept the same depth.
pub const JSON_DEPTH_MAX: usize = 128;
/// Bytes of bodies that have arrived and are not durable yet, over the whole process.
pub const IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The memory that a compressed body needs in addition to its bytes, from its first byte to its last: the decoder's
/// tables and its buffers. It counts as in flight.
pub const DECODER_BYTES: usize = 256 * 1024;
/// The largest window of a zstd body, as a power of two: every decoder must accept it, and none needs more (RFC 9659).
/// Only the decoded part of it uses memory.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of a request's line and headers.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a request that are read and discarded after a response that was sent before the request was read: twice the
/// largest batch. Clients that write the whole body first get the response then.
pub const DRAIN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long they are read at most.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Connections of a process that are drained at the same time. Further ones are closed immediately: rejected requests
/// shall not use the network and the cores of others.
pub const DRAINING_CONNECTIONS_MAX: usize = 256;
/// How long a connection may be idle between two requests, unless the configuration says otherwise: longer than most proxies keep theirs.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// The allowed values: connections are checked once a second.
pub const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`IDLE_TIMEOUT_MIN`]: load balancers keep theirs for at most ten minutes, and an hour leaves a margin.
pub const IDLE_TIMEOUT_MAX: Duration = Duration::from_hours(1);
/// How long a client that wants its events to be stored waits at most, unless the configuration says otherwise.
pub const ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// The allowed values: the deadlines of waiting requests are checked once a second, and proxies time out long before
/// the maximum.
pub const ACK_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`ACK_TIMEOUT_MIN`].
pub const ACK_TIMEOUT_MAX: Duration = Duration::from_mins(5);
/// Connections on the intake port.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Connections of one client, which may be a proxy of many: even if it opens all of these, the same number is left for
/// others.
pub const CONNECTIONS_PER_CLIENT_MAX: usize = CONNECTIONS_MAX / 2;
/// Connections of a writer's port: one for each lane of each gateway, and twice that while lanes move.
pub const WRITER_CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a type's name.
pub const TYPE_NAME_BYTES_MAX: usize = 64;
/// Types accepted under `"*"`: each costs a row in the ledger and a few metrics.
pub const OPEN_TYPES_MAX: usize = 1_000;
/// Bytes of a source's name (a token's name).
pub const SOURCE_BYTES_MAX: usize = 64;
/// Bytes of an `Idempotency-Key` or of an id found in a payload.
pub const KEY_BYTES_MAX: usize = 256;

/// Bytes of an expression's text. Expressions are written by hand; the longest example has 300.
pub const EXPRESSION_BYTES_MAX: usize = 8 * 1024;
/// Nested levels of an expression, and operators one after the other: each uses stack when it is evaluated.
pub const EXPRESSION_DEPTH_MAX: usize = 100;
/// Steps of an expression on one document. A condition needs ten; one that checks each of 10,000 elements of a list
/// needs about 50,000. Copied and gathered values cost steps as well, so memory is bounded too.
pub const EXPRESSION_STEPS_MAX: usize = 500_000;
/// Steps of a route's condition on the smallest event. All lanes share a thread, and clients choose the content of
/// events. A batch of 100,000 small ones takes seconds with these steps, and would take minutes with the limit of other
/// expressions.
pub const CONDITION_STEPS_LEAST: usize = 10_000;
/// Further ones for each byte of the payload, up to those of any expression. Checking an element of a list takes three.
pub const CONDITION_STEPS_A_BYTE: usize = 4;

/// Bytes of a schema and of each document that it refers to. They are written by hand, or generated from such texts.
pub const SCHEMA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Documents that a schema refers to.
pub const SCHEMA_DOCUMENTS_MAX: usize = 1_000;
/// Nested schemas, with all that they refer to: a large standard of an industry has some thousands.
pub const SCHEMA_RULES_MAX: usize = 50_000;
/// Schemas that refer to each other in a row, without going down into the document: each takes stack.
pub const SCHEMA_CHAIN_MAX: usize = 64;
/// Nested schemas that are followed on a document, including its inner values. Deeper ones than hand-written ones would
/// need more stack than a thread has.
pub const SCHEMA_DEPTH_MAX: usize = 500;
/// Steps of a check on one document, about 20 ms; the check leaves the shard's thread if it takes longer than others
/// should wait. An event of full size with half a million numbers takes half a million steps. A schema that checks the
/// same values repeatedly is stopped here.
pub const SCHEMA_STEPS_MAX: usize = 1_000_000;
/// Errors of one document that are listed: more would not help.
pub const SCHEMA_ERRORS_MAX: usize = 20;
/// Pairs of schemas that are compared to find what a newer one would reject.
pub const SCHEMA_COMPARISONS_MAX: usize = 20_000;
/// Members of an object that are distinguished when a schema is inferred from samples: one with more is a table, and
/// its names are data.
pub const SCHEMA_INFER_MEMBERS_MAX: usize = 500;
/// Nested schemas that are inferred from samples at most.
pub const SCHEMA_INFER_SHAPES_MAX: usize = 20_000;
/// Mistakes in a schema that are listed.
pub const SCHEMA_MISTAKES_MAX: usize = 20;
/// Steps of a transform. The longest hand-written example has 30.
pub const TRANSFORM_STEPS_MAX: usize = 100;
/// Bytes that the steps of a transform may create for one event, including intermediate ones: each may create a new
/// text, and several events of one.
pub const TRANSFORM_BYTES_MAX: usize = 8 * EVENT_BYTES_MAX;
/// Operations that all steps of a transform together may take on one event, including the events that they derive from
/// it. One operation takes about five nanoseconds: reading a byte, skipping a member. So the worst steps take a tenth
/// of a second, and their rejection doesn't depend on the machine. An event of 1 MiB can be read 16 times.
pub const TRANSFORM_WORK_MAX: usize = 16 * EVENT_BYTES_MAX;
/// Events that one event may be split into: their ids are those of a batch.
pub const EXPLODE_MAX: usize = 10_000;
/// Steps that a trial reports, and bytes of the payloads after them: an event that becomes ten thousand runs through
/// each step ten thousand times, which is too long to read.
pub const TRACED_STEPS_MAX: usize = 1_000;
/// See [`TRACED_STEPS_MAX`].
pub const TRACED_BYTES_MAX: usize = 8 * EVENT_BYTES_MAX;
/// Rules of a schema that are checked for settings that name impossible places, for each type. Beyond it nothing is
/// reported.
pub const SCHEMA_CHECKS_MAX: usize = 200_000;
/// Bytes of a lookup table: it is kept in memory.
pub const TABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Values that a step remembers to drop duplicates: the maximum, and the default.
pub const DEDUPE_VALUES_MAX: usize = 1_000_000;
/// See [`DEDUPE_VALUES_MAX`].
pub const DEDUPE_VALUES: usize = 10_000;
/// Measures of an aggregate, and pointers that it groups by: each costs something for every event.
pub const AGGREGATE_MEASURES_MAX: usize = 64;
/// See [`AGGREGATE_MEASURES_MAX`].
pub const AGGREGATE_GROUP_BY_MAX: usize = 16;
/// Bytes of the values that name a group. Longer ones are counted in the overflow group.
pub const AGGREGATE_GROUP_BYTES_MAX: usize = 1024;
/// Bytes of a value that a measure keeps unchanged, such as the first one. Longer ones are skipped.
pub const AGGREGATE_VALUE_BYTES_MAX: usize = 1024;
/// The shortest window: shorter ones have more results than events.
pub const AGGREGATE_WINDOW_MIN: Duration = Duration::from_millis(100);
/// The longest window: a leap year.
pub const AGGREGATE_WINDOW_MAX: Duration = Duration::from_hours(366 * 24);
/// Sliding windows that contain the same moment: an event costs as many steps.
pub const AGGREGATE_OVERLAP_MAX: i64 = 100;
/// Windows that are open at the same time: each has its part of the memory.
pub const AGGREGATE_WINDOWS_MAX: i64 = 10_000;
/// How late an event may be, unless the configuration says otherwise.
pub const AGGREGATE_LATENESS: Duration = Duration::from_mins(1);
/// The allowed values.
pub const AGGREGATE_LATENESS_MAX: Duration = Duration::from_hours(31 * 24);
/// How far ahead of its arrival an event may be dated, unless the configuration says otherwise: the usual error of
/// clocks.
pub const AGGREGATE_AHEAD: Duration = Duration::from_mins(5);
/// After how long a shard without events of the type no longer delays results, unless the configuration says otherwise.
pub const AGGREGATE_IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Memory of the groups of an aggregate, unless the configuration says otherwise.
pub const AGGREGATE_BYTES: usize = 64 * 1024 * 1024;
/// The allowed values.
pub const AGGREGATE_BYTES_MIN: usize = 1024 * 1024;
/// The most values that a `top` lists.
pub const AGGREGATE_TOP_MAX: usize = 100;

/// Memory of the deduplication window, when it is full. Older duplicates are recognised by the stores' keys.
pub const DUPLICATE_WINDOW_BYTES: usize = 64 * 1024 * 1024;

/// Dead letters of a sink, unless the configuration says otherwise: each takes an entry of the index in memory. At the limit the
/// sink's lanes pause.
pub const DEAD_LETTERS_MAX: usize = 1_000_000;
/// See [`DEAD_LETTERS_MAX`]: the least number, even with little memory.
pub const DEAD_LETTERS_MIN: usize = 10_000;
/// The allowed values.
pub const DEAD_LETTERS_SET_MAX: usize = 100_000_000;
/// Ids that one request for dead letters names. They are a part of its first line, of which the admin port accepts
/// 64 KiB.
pub const CHOSEN_IDS_MAX: usize = 1_000;

/// The allowed values for the memory of the process.
pub const MEMORY_SET_MIN: u64 = 16 * 1024 * 1024;
/// See [`MEMORY_SET_MIN`].
pub const MEMORY_SET_MAX: u64 = 1 << 44;

/// Events of a page that are read back: the default, and the maximum.
pub const READ_EVENTS_DEFAULT: usize = 100;
/// The maximum of a request.
pub const READ_EVENTS_MAX: usize = 1_000;
/// Ids of events that one query of a store looks up.
pub const LOOKUP_IDS_MAX: usize = 256;
/// How long a store may take for a read of events.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a page that is read back.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of pages that are being read, or that clients haven't received yet, over the whole process.
pub const READS_IN_FLIGHT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bridges of a gateway: a request is compared with each.
pub const BRIDGES_MAX: usize = 256;
/// Headers that one bridge passes.
pub const BRIDGE_HEADERS_MAX: usize = 32;
/// How long a service may take for the answer to a bridge's request, unless the configuration says otherwise.
pub const BRIDGE_TIMEOUT: Duration = Duration::from_secs(2);
/// The allowed values: a service needs some milliseconds under load, and proxies time out after the maximum.
pub const BRIDGE_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// See [`BRIDGE_TIMEOUT_MIN`].
pub const BRIDGE_TIMEOUT_MAX: Duration = Duration::from_mins(1);
/// Requests of a bridge that wait, unless the configuration says otherwise.
pub const BRIDGE_WAITING: usize = 1024;
/// The allowed values.
pub const BRIDGE_WAITING_MAX: usize = 65_536;

/// The unit in which blocks are laid out: a commit never rewrites a page that holds acknowledged events.
pub const PAGE_BYTES: usize = 4096;
/// The largest cost of a record in a block in addition to its payload: fixed part, tagged fields, padding.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 320;
/// The largest block: one batch of maximal size and count.
pub const BLOCK_BYTES_MAX: usize = BATCH_BYTES_MAX + BATCH_RECORDS_MAX * TYPICAL_RECORD_OVERHEAD + PAGE_BYTES;
/// The cost of a record of a batch in addition to its payload if type and source have full length: a batch has one type
/// and one source, and its payloads share [`BATCH_BYTES_MAX`].
const TYPICAL_RECORD_OVERHEAD: usize = 280;
/// Bytes at which an open block is committed though more requests wait.
pub const COMMIT_GROUP_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Buffers for the records of batches that a shard keeps for the next ones, each of at most [`COMMIT_GROUP_BYTES_MAX`].
/// Without them their memory would grow from nothing for each batch, and the copying is a fifth of the cost of a batch.
pub const SPARE_RECORDS_MAX: usize = 4;
/// The first segment of a journal: small, for an instant first start.
pub const SEGMENT_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// The length that segments grow to, by doubling.
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of blocks kept in memory for delivery, in each shard; others are read from disk.
pub const TAIL_CACHE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Records of a delivered batch.
pub const DELIVERY_RECORDS_MAX: usize = 10_000;
/// Payload bytes of a delivered batch, unless one event alone is larger.
pub const DELIVERY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a store over a network may take for one statement, unless the configuration says otherwise. A batch takes a
/// fraction of a second, and a store that no longer answers must be noticed.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// The allowed values.
pub const STORE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`STORE_TIMEOUT_MIN`].
pub const STORE_TIMEOUT_MAX: Duration = Duration::from_hours(1);
/// How long a gateway waits for a writer that sends heartbeats, unless the configuration says otherwise. A batch takes several statements
/// of a store, each of which may take [`STORE_TIMEOUT`].
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10 * STORE_TIMEOUT.as_secs());
/// The allowed values. The longest one suits stores with [`STORE_TIMEOUT_MAX`].
pub const RESPONSE_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// See [`RESPONSE_TIMEOUT_MIN`].
pub const RESPONSE_TIMEOUT_MAX: Duration = Duration::from_secs(10 * STORE_TIMEOUT_MAX.as_secs());
/// The times that the configuration may give a connection to a store: how long it may be idle, and how long it is used.
pub const STORE_CONNECTION_AGE_MIN: Duration = Duration::from_secs(1);
/// See [`STORE_CONNECTION_AGE_MIN`].
pub const STORE_CONNECTION_AGE_MAX: Duration = Duration::from_hours(24);
/// Connections to one store that the configuration may allow.
pub const STORE_CONNECTIONS_MAX: usize = 1000;
/// Connections for reads of one store that the configuration may allow. One thread has them all.
pub const STORE_READERS_MAX: usize = 100;
/// Bytes of documents in one request to a store over HTTP, unless the configuration says otherwise. A delivered batch
/// is several requests, which such a store processes concurrently.
pub const STORE_REQUEST_BYTES: usize = 1024 * 1024;
/// The allowed values: smaller requests have more overhead than content, and a larger one is never filled.
pub const STORE_REQUEST_BYTES_MIN: usize = 16 * 1024;
/// See [`STORE_REQUEST_BYTES_MIN`].
pub const STORE_REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests that such a store has in flight, unless the configuration says otherwise: those of one batch.
pub const STORE_REQUESTS: usize = 4;
/// The allowed values.
pub const STORE_REQUESTS_MAX: usize = 64;
/// Bytes of lines at which an object ends (a file of a directory sink), unless the configuration says otherwise.
pub const OBJECT_BYTES: u64 = 32 * 1024 * 1024;
/// The allowed values: smaller objects have more overhead than content, and larger ones aren't accepted in one request
/// by current object stores.
pub const OBJECT_BYTES_MIN: u64 = 64 * 1024;
/// See [`OBJECT_BYTES_MIN`].
pub const OBJECT_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024;
/// Events of an object, unless the configuration says otherwise: more than most of that size have.
pub const OBJECT_RECORDS: u64 = 1_000_000;
/// The allowed values.
pub const OBJECT_RECORDS_MAX: u64 = 100_000_000;
/// Bytes of an encoded object that a sink keeps until a store over HTTP has it: those of an object of [`OBJECT_BYTES`].
/// A larger object is encoded twice.
pub const OBJECT_KEPT_BYTES_MAX: u32 = 32 * 1024 * 1024;
/// The same for all objects that a sink has in flight: two of the largest, one of which is sent while the next is
/// built. Others wait.
pub const OBJECTS_KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Objects of a lane that are in flight to the store concurrently: small ones fill the time in which the store makes
/// others durable.
pub const OBJECTS_IN_FLIGHT: usize = 4;
/// Objects that are gathered concurrently, each with the events of one type, or of one day or hour. Each costs another
/// scan of the journal.
pub const OBJECTS_GATHERED_MAX: usize = 64;
/// Bytes of objects that are in memory for readers, over the whole process, unless the configuration says otherwise:
/// those that are cached, being fetched, and being sent.
pub const OBJECT_CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// The allowed values.
pub const OBJECT_CACHE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of an object that is cached as a whole: more than a part of a payload has. Larger ones are streamed.
pub const OBJECT_CACHED_BYTES_MAX: u64 = 1024 * 1024;
/// Objects that are fetched from a sink's store at the same time: a store that hangs blocks no other.
pub const OBJECT_FETCHES_MAX: usize = 8;
/// Objects of a sink that are waited for: further clients are asked to retry later.
pub const OBJECT_READS_WAITING_MAX: usize = 256;
/// How long an object is waited for, including its time in the queue.
pub const OBJECT_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an object is served before its store is asked whether it has changed, unless the configuration says
/// otherwise.
pub const OBJECT_REVALIDATE: Duration = Duration::from_mins(1);
/// The allowed values of this, and of how long an object is served whose store doesn't answer.
pub const OBJECT_AGE_READ_MAX: Duration = Duration::from_hours(24 * 365);
/// How long the first event of an object waits for others, unless the configuration says otherwise.
pub const OBJECT_AGE: Duration = Duration::from_secs(30);
/// The allowed values: a shorter time creates many small ones, and an event that waits for a day is in the journal for
/// a day.
pub const OBJECT_AGE_MIN: Duration = Duration::from_secs(1);
/// See [`OBJECT_AGE_MIN`].
pub const OBJECT_AGE_MAX: Duration = Duration::from_hours(24);
/// Space reserved on disk, so cursors and dead letters can be written when the disk is full.
pub const RESERVE_BYTES: u64 = 1024 * 1024;
/// Bytes of a disk below which events are rejected, unless [`KEEP_FREE_PART`] of it is less: delivery needs them until
/// segments are freed.
pub const KEEP_FREE_BYTES: u64 = 1024 * 1024 * 1024;
/// The same for files, of which a segment, a dead letter's journal and a store's log each need one.
pub const KEEP_FREE_FILES: u64 = 1_000;
/// One part in this many of a file system is kept free, or less.
pub const KEEP_FREE_PART: u64 = 20;
/// On a small disk at least this much is kept free: a store's log and its largest transaction need as much, even if few
/// events wait.
pub const KEEP_FREE_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// On a very small one at most one part in this many.
pub const KEEP_FREE_PART_MAX: u64 = 4;
/// A store on the journal's disk uses up to this many bytes for each byte that waits for it, until the segment is
/// freed: SQLite writes it into its log and then into the table.
pub const STORE_BYTES_PER_BYTE: u64 = 2;

const _: () = assert!(
    ACK_TIMEOUT_MIN.as_secs() <= ACK_TIMEOUT.as_secs() && ACK_TIMEOUT.as_secs() <= ACK_TIMEOUT_MAX.as_secs(),
    "the default is an allowed value"
);
const _: () = assert!(
    BRIDGE_TIMEOUT_MIN.as_millis() <= BRIDGE_TIMEOUT.as_millis()
        && BRIDGE_TIMEOUT.as_millis() <= BRIDGE_TIMEOUT_MAX.as_millis()
        && BRIDGE_WAITING <= BRIDGE_WAITING_MAX,
    "the defaults are allowed values"
);
const _: () = assert!(EXPLODE_MAX <= BATCH_RECORDS_MAX, "the events of one have the ids of a batch");
const _: () = assert!(
    TRANSFORM_BYTES_MAX >= 2 * EVENT_BYTES_MAX && TRANSFORM_BYTES_MAX <= BATCH_BYTES_MAX,
    "an event of full size can be changed as a whole, and the events of one are at most a batch"
);
const _: () =
    assert!(TRANSFORM_WORK_MAX >= 4 * EVENT_BYTES_MAX, "the costliest step can be done on an event of full size");
const _: () = assert!(DEDUPE_VALUES <= DEDUPE_VALUES_MAX, "the default is an allowed value");
const _: () = assert!(BATCH_BYTES_MAX as u64 <= DRAIN_BYTES_MAX, "a batch that is rejected early is read to its end");
const _: () = assert!(EVENT_BYTES_MAX <= BATCH_BYTES_MAX, "a batch holds at least one event of full size");
const _: () = assert!(BATCH_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "one batch of full size is always admitted");
const _: () = assert!(BLOCK_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "so are its records");
const _: () = assert!(BLOCK_BYTES_MAX + DECODER_BYTES <= IN_FLIGHT_BYTES_MAX, "so is a compressed one");
const _: () = assert!(
    BLOCK_BYTES_MAX as u64 + 2 * PAGE_BYTES as u64 <= SEGMENT_BYTES_MAX,
    "a segment holds its header, the largest block and a seal"
);
const _: () = assert!(TYPE_NAME_BYTES_MAX + SOURCE_BYTES_MAX + 128 <= TYPICAL_RECORD_OVERHEAD, "the envelope fits");
const _: () = assert!(TYPICAL_RECORD_OVERHEAD <= RECORD_OVERHEAD_BYTES_MAX, "the block's budget is the record's");
const _: () = assert!(COMMIT_GROUP_BYTES_MAX <= BLOCK_BYTES_MAX, "a commit group is one block");
const _: () = assert!(2 * COMMIT_GROUP_BYTES_MAX <= TAIL_CACHE_BYTES_MAX, "a lane that keeps up reads from memory");
const _: () = assert!(EVENT_BYTES_MAX <= DELIVERY_BYTES_MAX, "a delivered batch holds at least one event");
const _: () = assert!(EVENT_BYTES_MAX <= READ_BYTES_MAX / 2, "a page has room for an event of full size");
const _: () = assert!(READ_BYTES_MAX <= READS_IN_FLIGHT_BYTES_MAX, "a page of full size can be read");
const _: () = assert!(
    OBJECT_BYTES_MIN <= OBJECT_BYTES && OBJECT_BYTES <= OBJECT_BYTES_MAX && OBJECT_RECORDS <= OBJECT_RECORDS_MAX,
    "the default is an allowed value"
);
const _: () =
    assert!(2 * OBJECT_KEPT_BYTES_MAX as usize <= OBJECTS_KEPT_BYTES_MAX, "an object is built while another is sent");
const _: () = assert!(EVENT_BYTES_MAX as u64 <= OBJECT_CACHED_BYTES_MAX, "parts of payloads are kept as a whole");
const _: () = assert!(
    4 * OBJECT_CACHED_BYTES_MAX <= OBJECT_CACHE_BYTES && OBJECT_CACHE_BYTES <= OBJECT_CACHE_BYTES_MAX,
    "the default has room for some of the largest, and can be set"
);
const _: () = assert!(
    OBJECT_AGE_MIN.as_secs() <= OBJECT_AGE.as_secs() && OBJECT_AGE.as_secs() <= OBJECT_AGE_MAX.as_secs(),
    "the default is an allowed value"
);
const _: () = assert!(
    AGGREGATE_LATENESS.as_secs() <= AGGREGATE_LATENESS_MAX.as_secs() && AGGREGATE_BYTES_MIN <= AGGREGATE_BYTES,
    "the default is an allowed value"
);
const _: () = assert!(READ_EVENTS_DEFAULT <= READ_EVENTS_MAX, "the default may be asked for");
const _: () =
    assert!(CHOSEN_IDS_MAX * "%2C2651fa94-4d60-8482-855f-ec6e00000007".len() < 48 * 1024, "other filters fit too");
const _: () = assert!(KEEP_FREE_BYTES_MIN <= KEEP_FREE_BYTES && KEEP_FREE_PART_MAX <= KEEP_FREE_PART);
const _: () = assert!(SEGMENT_BYTES_MIN <= SEGMENT_BYTES_MAX && SEGMENT_BYTES_MIN.is_multiple_of(PAGE_BYTES as u64));
