//! Every limit of Forebay, with its reason. The asserts at the end relate them, so that no limit can be
//! changed into one that another contradicts.

pub mod memory;

use std::time::Duration;

/// Bytes of a single payload. One event is one row or document: more is a file.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a batch body as it arrives.
pub const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Records of a batch: they share one block, and one answer.
pub const BATCH_RECORDS_MAX: usize = 100_000;
/// Refusals that the answer to a batch lists; the others are counted.
pub const REFUSALS_LISTED_MAX: usize = 1_000;
/// About how many bytes of refused events wait in a shard to be stored as events of another type. Those beyond it aren't stored.
pub const REFUSED_BYTES_WAITING_MAX: usize = 256 * 1024;
/// Arrays and objects within each other. It is also what JSON libraries of the stores accept.
pub const JSON_DEPTH_MAX: usize = 128;
/// Bytes of bodies that have arrived and are not durable yet, over the whole process.
pub const IN_FLIGHT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a body in a content coding costs beside its bytes, from its first byte to its last: the decoder's tables and
/// its buffers. It counts as in flight.
pub const DECODER_BYTES: usize = 256 * 1024;
/// The largest window of a zstd body, as a power of two: what every decoder must take, and none needs to exceed
/// (RFC 9659). Only what was decoded of it takes memory.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Bytes of a request's line and headers.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a request that are read and discarded after a response that left before the request was read: twice the largest batch. Clients
/// that write the whole body before they read get the response then.
pub const DRAIN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long they are read at most.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Connections of a process on which that is done at a time. Beyond it a connection is closed at once: refused requests shall not take the
/// network and the cores from others.
pub const DRAINING_CONNECTIONS_MAX: usize = 256;
/// How long a connection may be idle between two requests, unless the configuration says otherwise: longer than most proxies keep theirs.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// What the configuration may say: connections are looked at once a second.
pub const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`IDLE_TIMEOUT_MIN`]: the longest that load balancers keep theirs is ten minutes, and an hour leaves room.
pub const IDLE_TIMEOUT_MAX: Duration = Duration::from_hours(1);
/// How long a client waits at most that wants its events to be stored, unless the configuration says otherwise.
pub const ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// What the configuration may say: the clocks of waiting requests are looked at once a second, and proxies give up long
/// before the most.
pub const ACK_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`ACK_TIMEOUT_MIN`].
pub const ACK_TIMEOUT_MAX: Duration = Duration::from_mins(5);
/// Connections on the intake port.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Connections of one client, which may be a proxy with many behind it: however many it opens, as many are left for others.
pub const CONNECTIONS_PER_CLIENT_MAX: usize = CONNECTIONS_MAX / 2;
/// Connections of a writer's port: one for each lane of each gateway, and twice that while lanes move.
pub const WRITER_CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a type's name.
pub const TYPE_NAME_BYTES_MAX: usize = 64;
/// Types taken under `"*"`: each costs a row in the ledger and a few metrics.
pub const OPEN_TYPES_MAX: usize = 1_000;
/// Bytes of a source's name (a token's name).
pub const SOURCE_BYTES_MAX: usize = 64;
/// Bytes of an `Idempotency-Key` or of an id found in a payload.
pub const KEY_BYTES_MAX: usize = 256;

/// Bytes of an expression's text. A person writes one; the longest that was thought of has 300.
pub const EXPRESSION_BYTES_MAX: usize = 8 * 1024;
/// Levels of an expression within each other, and of operators one after the other: each takes stack when it is worked out.
pub const EXPRESSION_DEPTH_MAX: usize = 100;
/// Steps of an expression on one document. A condition takes ten; one that looks at each of 10,000
/// elements of a list takes some 50,000. What is copied or gathered costs steps as well, so that memory is bounded with them.
pub const EXPRESSION_STEPS_MAX: usize = 500_000;
/// Steps of a route's condition on the smallest event. All lanes share a thread, and who posts chooses what stands in an event: a
/// batch of 100,000 small ones takes seconds with these, and minutes with all that an expression may take.
pub const CONDITION_STEPS_LEAST: usize = 10_000;
/// Further ones for each byte of the payload, up to those of any expression. To look at each element of a list takes three.
pub const CONDITION_STEPS_A_BYTE: usize = 4;

/// Bytes of a schema and of each document that it refers to. People write them, or programs from what people wrote.
pub const SCHEMA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Documents that a schema refers to.
pub const SCHEMA_DOCUMENTS_MAX: usize = 1_000;
/// Schemas within each other, with all that they refer to: a large standard of an industry has some thousands.
pub const SCHEMA_RULES_MAX: usize = 50_000;
/// Schemas that refer to each other in a row, without going down into the document: each takes stack.
pub const SCHEMA_CHAIN_MAX: usize = 64;
/// Schemas that are followed within each other on a document, down into it too. Deeper ones than people write would take more
/// of the stack than a thread has.
pub const SCHEMA_DEPTH_MAX: usize = 500;
/// Steps of a check on one document, some 20 ms, beside the shard where it is more than others should wait for. An event of full size
/// with half a million numbers takes half a million; a schema that asks the same thing again and again is ended here.
pub const SCHEMA_STEPS_MAX: usize = 1_000_000;
/// Errors of one document that are listed: more says nothing new.
pub const SCHEMA_ERRORS_MAX: usize = 20;
/// Pairs of schemas that are compared to tell what a newer one would refuse.
pub const SCHEMA_COMPARISONS_MAX: usize = 20_000;
/// Members of an object that are told apart when a schema is made of samples: one with more is a table, and its names are data.
pub const SCHEMA_INFER_MEMBERS_MAX: usize = 500;
/// Schemas within each other that are made of samples at most.
pub const SCHEMA_INFER_SHAPES_MAX: usize = 20_000;
/// Mistakes in a schema that are listed.
pub const SCHEMA_MISTAKES_MAX: usize = 20;
/// Steps of a transform. Each that a person writes has a reason; the longest that was thought of has 30.
pub const TRANSFORM_STEPS_MAX: usize = 100;
/// Bytes that the steps of a transform may make of one event on the way, whatever is left of them at the end: each
/// may make a text of its own, and several events of one.
pub const TRANSFORM_BYTES_MAX: usize = 8 * EVENT_BYTES_MAX;
/// Operations that all steps of a transform together may take on one event, the events that they make of it included. One is
/// what some five nanoseconds are enough for: to read a byte, to pass by a member. So the worst that steps can do takes a
/// tenth of a second, and what they are refused for doesn't depend on the machine. An event of 1 MiB can be read 16 times.
pub const TRANSFORM_WORK_MAX: usize = 16 * EVENT_BYTES_MAX;
/// Events that one event may be made of: their ids are those of a batch.
pub const EXPLODE_MAX: usize = 10_000;
/// Steps that a trial tells of, and bytes of the payloads behind them: an event that becomes ten thousand is taken through each
/// step ten thousand times, and nobody reads that.
pub const TRACED_STEPS_MAX: usize = 1_000;
/// See [`TRACED_STEPS_MAX`].
pub const TRACED_BYTES_MAX: usize = 8 * EVENT_BYTES_MAX;
/// Rules of a schema that are looked at to find what a configuration names and can't be there: for each type, and beyond
/// it nothing is said.
pub const SCHEMA_LOOKS_MAX: usize = 200_000;
/// Bytes of a table that values are looked up in: it is kept in memory.
pub const TABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Values that a step remembers to leave out what comes again, and those it remembers unless it says how many.
pub const DEDUPE_VALUES_MAX: usize = 1_000_000;
/// See [`DEDUPE_VALUES_MAX`].
pub const DEDUPE_VALUES: usize = 10_000;
/// Measures of an aggregate, and pointers that it groups by: each costs something for every event.
pub const AGGREGATE_MEASURES_MAX: usize = 64;
/// See [`AGGREGATE_MEASURES_MAX`].
pub const AGGREGATE_GROUP_BY_MAX: usize = 16;
/// Bytes of the values that name a group. What is longer is counted in the overflow group.
pub const AGGREGATE_GROUP_BYTES_MAX: usize = 1024;
/// Bytes of a value that a measure keeps as it is, such as the first one. What is longer is passed over.
pub const AGGREGATE_VALUE_BYTES_MAX: usize = 1024;
/// The shortest window: shorter ones make more results than they have events.
pub const AGGREGATE_WINDOW_MIN: Duration = Duration::from_millis(100);
/// The longest window: a leap year.
pub const AGGREGATE_WINDOW_MAX: Duration = Duration::from_hours(366 * 24);
/// Sliding windows that hold the same moment: an event costs as many steps.
pub const AGGREGATE_OVERLAP_MAX: i64 = 100;
/// Windows that are open at the same time: each has its part of the memory.
pub const AGGREGATE_WINDOWS_MAX: i64 = 10_000;
/// How late an event may be, unless the configuration says otherwise.
pub const AGGREGATE_LATENESS: Duration = Duration::from_mins(1);
/// What the configuration may say.
pub const AGGREGATE_LATENESS_MAX: Duration = Duration::from_hours(31 * 24);
/// How far ahead of its arrival an event may be dated, unless the configuration says otherwise: what clocks are off by.
pub const AGGREGATE_AHEAD: Duration = Duration::from_mins(5);
/// After how long a shard without events of the type holds up nobody any more, unless the configuration says otherwise.
pub const AGGREGATE_IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Memory of the groups of an aggregate, unless the configuration says otherwise.
pub const AGGREGATE_BYTES: usize = 64 * 1024 * 1024;
/// What the configuration may say.
pub const AGGREGATE_BYTES_MIN: usize = 1024 * 1024;
/// The most values that a `top` lists.
pub const AGGREGATE_TOP_MAX: usize = 100;

/// Memory of the window in which events that come again are recognised, when it is full. What is older is recognised by
/// the stores' own keys.
pub const DUPLICATE_WINDOW_BYTES: usize = 64 * 1024 * 1024;

/// Dead letters of a sink, unless the configuration says otherwise: each takes an entry of the index in memory. At the limit the
/// sink's lanes pause.
pub const DEAD_LETTERS_MAX: usize = 1_000_000;
/// See [`DEAD_LETTERS_MAX`]: what they come to at least, however little memory there is.
pub const DEAD_LETTERS_MIN: usize = 10_000;
/// What the configuration may say.
pub const DEAD_LETTERS_SET_MAX: usize = 100_000_000;

/// What the configuration may say of the memory of the process.
pub const MEMORY_SET_MIN: u64 = 16 * 1024 * 1024;
/// See [`MEMORY_SET_MIN`].
pub const MEMORY_SET_MAX: u64 = 1 << 44;

/// Events of a page that are read back, where nobody says how many, and at most.
pub const READ_EVENTS_DEFAULT: usize = 100;
/// The most that may be asked for.
pub const READ_EVENTS_MAX: usize = 1_000;
/// Bytes of a page that is read back.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of pages that are being read, or that clients haven't taken yet, over the whole process.
pub const READS_IN_FLIGHT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The unit in which blocks are laid out: a commit never rewrites a page that holds acknowledged events.
pub const PAGE_BYTES: usize = 4096;
/// The largest cost of a record in a block beside its payload: fixed part, tagged fields, padding.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 320;
/// The largest block: one batch of maximal size and count.
pub const BLOCK_BYTES_MAX: usize = BATCH_BYTES_MAX + BATCH_RECORDS_MAX * TYPICAL_RECORD_OVERHEAD + PAGE_BYTES;
/// What a record of a batch costs beside its payload where type and source are of full length: a batch has
/// one type and one source, and its payloads share [`BATCH_BYTES_MAX`].
const TYPICAL_RECORD_OVERHEAD: usize = 280;
/// Bytes at which an open block is committed though more requests wait.
pub const COMMIT_GROUP_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Buffers for the records of batches that a shard keeps for the next ones, each of at most [`COMMIT_GROUP_BYTES_MAX`]: else their memory would
/// grow from nothing for each batch, and a fifth of what a batch costs is copying at that.
pub const SPARE_RECORDS_MAX: usize = 4;
/// The first segment of a journal: small, so that the first start is instant.
pub const SEGMENT_BYTES_MIN: u64 = 4 * 1024 * 1024;
/// What segments grow to, by doubling.
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of blocks kept in memory for delivery, in each shard; what doesn't fit is read from disk.
pub const TAIL_CACHE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Records of a delivered batch.
pub const DELIVERY_RECORDS_MAX: usize = 10_000;
/// Payload bytes of a delivered batch, unless one event alone is larger.
pub const DELIVERY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a store over a network may take for one statement, unless the configuration says otherwise: a batch takes a
/// fraction of a second, and a store that has stopped answering is to be noticed.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(30);
/// What the configuration may say.
pub const STORE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// See [`STORE_TIMEOUT_MIN`].
pub const STORE_TIMEOUT_MAX: Duration = Duration::from_hours(1);
/// How long a gateway waits for a writer that sends heartbeats, unless the configuration says otherwise. A batch takes several statements
/// of a store, each of which may take [`STORE_TIMEOUT`].
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10 * STORE_TIMEOUT.as_secs());
/// What the configuration may say. The longest one suits stores with [`STORE_TIMEOUT_MAX`].
pub const RESPONSE_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// See [`RESPONSE_TIMEOUT_MIN`].
pub const RESPONSE_TIMEOUT_MAX: Duration = Duration::from_secs(10 * STORE_TIMEOUT_MAX.as_secs());
/// The times that the configuration may give a connection to a store: how long it may be idle, and how long it is used.
pub const STORE_CONNECTION_AGE_MIN: Duration = Duration::from_secs(1);
/// See [`STORE_CONNECTION_AGE_MIN`].
pub const STORE_CONNECTION_AGE_MAX: Duration = Duration::from_hours(24);
/// Connections to one store that the configuration may allow.
pub const STORE_CONNECTIONS_MAX: usize = 1000;
/// Bytes of documents in one request to a store that takes them by HTTP, unless the configuration says otherwise: a delivered batch is
/// several requests, which such a store works on side by side.
pub const STORE_REQUEST_BYTES: usize = 1024 * 1024;
/// What the configuration may say: smaller ones cost more for their heads than for what is in them, and a larger one is never filled.
pub const STORE_REQUEST_BYTES_MIN: usize = 16 * 1024;
/// See [`STORE_REQUEST_BYTES_MIN`].
pub const STORE_REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests that such a store has in flight, unless the configuration says otherwise: those of one batch.
pub const STORE_REQUESTS: usize = 4;
/// What the configuration may say.
pub const STORE_REQUESTS_MAX: usize = 64;
/// Bytes of lines at which an object ends (a file of a directory sink), unless the configuration says otherwise.
pub const OBJECT_BYTES: u64 = 32 * 1024 * 1024;
/// What the configuration may say: smaller ones cost more for their names than for what is in them, and larger ones aren't
/// taken in one request by the stores of objects that there are.
pub const OBJECT_BYTES_MIN: u64 = 64 * 1024;
/// See [`OBJECT_BYTES_MIN`].
pub const OBJECT_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024;
/// Events of an object, unless the configuration says otherwise: more than most of that size have.
pub const OBJECT_RECORDS: u64 = 1_000_000;
/// What the configuration may say.
pub const OBJECT_RECORDS_MAX: u64 = 100_000_000;
/// Bytes of an object, as they are coded, that a sink keeps until a store over HTTP has them:
/// those of an object of [`OBJECT_BYTES`]. Those of a larger object are made twice.
pub const OBJECT_KEPT_BYTES_MAX: u32 = 32 * 1024 * 1024;
/// The same for all objects that a sink has on their way: two of the largest, one of which is sent while the next is made. Others wait until
/// there is room.
pub const OBJECTS_KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Objects of a lane that are on their way to the store at once: small ones fill the time in which the store makes others durable.
pub const OBJECTS_IN_FLIGHT: usize = 4;
/// Objects that are gathered at once, each with the events of one type, or of one day or hour. Each costs the journal another reading.
pub const OBJECTS_GATHERED_MAX: usize = 64;
/// Bytes of objects that are in memory for those who read them, over the whole process, unless the configuration says otherwise: those
/// that are kept, being fetched, and being given out.
pub const OBJECT_CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// What the configuration may say.
pub const OBJECT_CACHE_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of an object that is kept in memory as a whole: more than a part of a payload has. Larger ones are passed on as they come.
pub const OBJECT_CACHED_BYTES_MAX: u64 = 1024 * 1024;
/// Objects that a sink's store is asked for at a time: a store that hangs holds up no other.
pub const OBJECT_FETCHES_MAX: usize = 8;
/// Objects of a sink that are waited for: beyond that who asks is told to come back.
pub const OBJECT_READS_WAITING_MAX: usize = 256;
/// How long an object is waited for, its turn included.
pub const OBJECT_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an object is given out before its store is asked whether it is still the same, unless the configuration says otherwise.
pub const OBJECT_REVALIDATE: Duration = Duration::from_mins(1);
/// What the configuration may say of this and of how long an object is given out whose store doesn't answer.
pub const OBJECT_AGE_READ_MAX: Duration = Duration::from_hours(24 * 365);
/// How long the first event of an object waits for others, unless the configuration says otherwise.
pub const OBJECT_AGE: Duration = Duration::from_secs(30);
/// What the configuration may say: more often makes many small ones, and what waits for a day is in the journal for a day.
pub const OBJECT_AGE_MIN: Duration = Duration::from_secs(1);
/// See [`OBJECT_AGE_MIN`].
pub const OBJECT_AGE_MAX: Duration = Duration::from_hours(24);
/// Space kept back on disk, so that cursors and dead letters can be written when the disk is full.
pub const RESERVE_BYTES: u64 = 1024 * 1024;
/// Bytes of a disk below which no events are taken any more, unless [`KEEP_FREE_PART`] of it is less: for what delivery
/// writes until segments are freed.
pub const KEEP_FREE_BYTES: u64 = 1024 * 1024 * 1024;
/// The same for files, of which a segment, a dead letter's journal and a store's log each need one.
pub const KEEP_FREE_FILES: u64 = 1_000;
/// One part in so many of a file system is kept free, or less.
pub const KEEP_FREE_PART: u64 = 20;
/// On a small disk no less is kept: a store's log and its largest transaction take as much, however little waits for it.
pub const KEEP_FREE_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// On a very small one no more than one part in so many.
pub const KEEP_FREE_PART_MAX: u64 = 4;
/// A store on the journal's own disk takes up to so many bytes for each that waits for it, until the segment is freed: SQLite writes
/// it into its log and then into the table.
pub const STORE_BYTES_PER_BYTE: u64 = 2;

const _: () = assert!(
    ACK_TIMEOUT_MIN.as_secs() <= ACK_TIMEOUT.as_secs() && ACK_TIMEOUT.as_secs() <= ACK_TIMEOUT_MAX.as_secs(),
    "the default is one of those that can be set"
);
const _: () = assert!(EXPLODE_MAX <= BATCH_RECORDS_MAX, "the events made of one have the ids of a batch");
const _: () = assert!(
    TRANSFORM_BYTES_MAX >= 2 * EVENT_BYTES_MAX && TRANSFORM_BYTES_MAX <= BATCH_BYTES_MAX,
    "an event of full size can be changed as a whole, and the events made of one are at most a batch"
);
const _: () =
    assert!(TRANSFORM_WORK_MAX >= 4 * EVENT_BYTES_MAX, "the costliest step can be done on an event of full size");
const _: () = assert!(DEDUPE_VALUES <= DEDUPE_VALUES_MAX, "the default is one of those that can be set");
const _: () = assert!(BATCH_BYTES_MAX as u64 <= DRAIN_BYTES_MAX, "a batch that is refused early is read to its end");
const _: () = assert!(EVENT_BYTES_MAX <= BATCH_BYTES_MAX, "a batch holds at least one event of full size");
const _: () = assert!(BATCH_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "one batch of full size is always admitted");
const _: () = assert!(BLOCK_BYTES_MAX <= IN_FLIGHT_BYTES_MAX, "so are its records");
const _: () = assert!(BLOCK_BYTES_MAX + DECODER_BYTES <= IN_FLIGHT_BYTES_MAX, "so is one that comes encoded");
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
    "the default is one of those that can be set"
);
const _: () =
    assert!(2 * OBJECT_KEPT_BYTES_MAX as usize <= OBJECTS_KEPT_BYTES_MAX, "an object is made while another is sent");
const _: () = assert!(EVENT_BYTES_MAX as u64 <= OBJECT_CACHED_BYTES_MAX, "parts of payloads are kept as a whole");
const _: () = assert!(
    4 * OBJECT_CACHED_BYTES_MAX <= OBJECT_CACHE_BYTES && OBJECT_CACHE_BYTES <= OBJECT_CACHE_BYTES_MAX,
    "the default has room for some of the largest, and can be set"
);
const _: () = assert!(
    OBJECT_AGE_MIN.as_secs() <= OBJECT_AGE.as_secs() && OBJECT_AGE.as_secs() <= OBJECT_AGE_MAX.as_secs(),
    "the default is one of those that can be set"
);
const _: () = assert!(
    AGGREGATE_LATENESS.as_secs() <= AGGREGATE_LATENESS_MAX.as_secs() && AGGREGATE_BYTES_MIN <= AGGREGATE_BYTES,
    "the default is one of those that can be set"
);
const _: () = assert!(READ_EVENTS_DEFAULT <= READ_EVENTS_MAX, "the default may be asked for");
const _: () = assert!(KEEP_FREE_BYTES_MIN <= KEEP_FREE_BYTES && KEEP_FREE_PART_MAX <= KEEP_FREE_PART);
const _: () = assert!(SEGMENT_BYTES_MIN <= SEGMENT_BYTES_MAX && SEGMENT_BYTES_MIN.is_multiple_of(PAGE_BYTES as u64));
