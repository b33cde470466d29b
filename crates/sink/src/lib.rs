//! Sinks: drivers of stores. A sink connects, tells a lane's cursor, writes batches, reads back what is stored where
//! it can, and closes. It never retries, never batches and never decides what is dropped: delivery does.

mod batch;
mod claim;
#[cfg(feature = "conformance")]
pub mod conformance;
mod connection_pool;
mod contract;
mod driver;
pub mod elasticsearch;
mod envelope;
mod folder;
mod lane_states;
mod mark;
pub mod memory;
pub mod nats;
pub mod object;
pub mod postgres;
mod read_thread;
pub mod redis;
pub mod remote;
mod sqlite;
mod table_name;
pub mod webhook;

pub use batch::{Batch, Record, Write};
pub use claim::{Claim, Held, InvalidClaim, Takeover};
pub use contract::{Cursor, Reason, Refusal, Report, Retry, RetryScope, SinkError, Traits};
pub use driver::{Sink, SinkConfig};
pub use mark::{InvalidMark, Mark};
pub use memory::MemoryHandle;
pub use object::directory::DirectoryConfig;
pub use object::{Codec, Manifest, ObjectRules, ObjectStore, Parts, Prefix};
pub use sqlite::{Sqlite, SqliteConfig};
pub use table_name::{InvalidTableName, TableName};
