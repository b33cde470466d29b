//! The HTTP side of Forebay: accepts events and batches, rejects invalid ones, and answers 200 once the bytes are durable. It knows no
//! sink.
//!
//! One listener hands sockets to shards. A shard is one thread with one runtime and one journal. When its runtime is about to park, the
//! shard commits the appended events as one block, and only then the handlers answer. The transport is the crate `http1`, which calls the
//! router as its `Handler`.
//!
//! | folder | content | may use |
//! |---|---|---|
//! | `event_types` | the registered event types and their rules | – |
//! | `refusals` | what is counted, logged and stored of rejected events | `event_types` |
//! | `admission` | limits: bytes in flight, clients' shares, connections | – |
//! | `auth` | tokens, hosts, CORS, trusted proxies | – |
//! | `bridge` | requests that services answer over the bus | `admission`, `shard` |
//! | `intakes` | the protocols of senders that can't be changed | `event_types` |
//! | `ingest` | the one pipeline from a payload to a record of the log | `event_types` |
//! | `shard` | the state of one core | all above |
//! | `append` | the one append of an event, or of a batch, to the log | `shard`, `ingest` |
//! | `ack` | **when the 200 is sent**: waits until events are durable, or stored | `append`, `shard`, `ingest` |
//! | `handlers` | one file for each route, and the router | all above |
//! | `gateway` | threads: the listener, the shards' loops, reconfiguration | all |

mod ack;
mod admission;
mod append;
mod auth;
mod bridge;
mod cached_clock;
mod coarse_timer;
mod counters;
mod error_code;
mod event_types;
mod filter_counts;
mod gateway;
mod handlers;
mod ingest;
mod intakes;
mod lookups;
mod object_readers;
mod problem;
#[cfg(test)]
mod problem_pages;
mod readiness;
mod refusals;
mod responses;
mod route;
mod shard;
mod status_class;
mod tapped;

pub use bridge::{
    BridgeAccess, BridgeBoard, BridgeCounters, BridgeRule, InvalidMethod, InvalidPass, InvalidPath, Methods,
    PathPattern, passed_header,
};
pub use counters::GatewayCounters;
pub use error_code::ErrorCode;
pub use event_types::{
    GatewayTypes, IdRule, RefusedTo, StoreReaders, TextRule, TransformHandle, TypeNames, TypeResolver, TypeRules,
};
pub use gateway::command::LongRequests;
pub use gateway::control::{GatewayControl, ShardState};
pub use gateway::{Gateway, GatewayOptions};
pub use handlers::{ReadBody, ReadMemory, ReadRefused, StoreAnswer, StoredEvents, event_json, look_up};
pub use ingest::{
    AcceptedEvent, DEFAULT_TYPE, DryRun, DryRunOutcome, DryRunRejection, DryRunTrace, DryRunTypes, RequestContext,
};
pub use intakes::{IntakeBoard, IntakeCounters, IntakeListener, IntakeRule};
pub use object_readers::ObjectReaders;
pub use readiness::Readiness;
pub use refusals::{QuarantineCounts, RefusalCount, RefusalNews, RefusalSample};
pub use route::RouteName;
pub use status_class::StatusClass;
