//! Sinks: drivers of stores. A sink connects, tells a lane's cursor, writes batches, reads back what is stored where
//! it can, and closes. It never retries, never batches and never decides what is dropped: delivery does.

mod batch;
mod claim;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod connection_pool;
mod contract;
mod driver;
#[cfg(feature = "elasticsearch")]
pub mod elasticsearch;
mod envelope;
#[cfg(any(feature = "http-client", feature = "nats", feature = "redis"))]
mod escapes;
mod folder;
#[cfg(feature = "http-client")]
pub mod http_client;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod lane_states;
pub mod memory;
#[cfg(feature = "nats")]
pub mod nats;
pub mod object;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "elasticsearch", feature = "postgres", feature = "remote"))]
mod read_thread;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "remote")]
pub mod remote;
mod sqlite;
#[cfg(any(feature = "http-client", feature = "nats", feature = "redis"))]
mod stream;
mod table_name;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use batch::{Batch, Record, Write};
pub use claim::{Claim, Held, InvalidClaim, Takeover};
pub use contract::{Cursor, Reason, Refusal, Report, Retry, RetryScope, SinkError, Traits};
pub use driver::{Sink, SinkConfig};
pub use memory::MemoryHandle;
pub use object::directory::DirectoryConfig;
pub use object::{Codec, Manifest, ObjectRules, ObjectStore, Parts, Prefix};
pub use sqlite::{Sqlite, SqliteConfig};
pub use table_name::{InvalidTableName, TableName};
