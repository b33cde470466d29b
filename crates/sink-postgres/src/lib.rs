//! PostgreSQL: a table of a server, or of the one among several servers that accepts writes.
//!
//! A transactional store: a lane's cursor is set in the transaction of its rows. Lanes share connections, at most one
//! for each lane. Reads have a separate connection and thread. A connection is opened by the first call.

mod bisect;
mod columns;
mod config;
mod conflict;
mod connection_limits;
mod creation;
mod creation_lock;
mod durability;
mod error;
mod examine;
mod kind;
mod mapping;
mod mark;
mod numeric;
mod open_session;
mod partitions;
mod pool;
mod pooler;
mod read;
mod reader;
mod session;
mod settings;
mod store;
mod table;
mod transaction;
mod url_options;

pub use config::{
    Column, InvalidPostgresUrl, Partition, PayloadKind, PostgresConfig, PostgresServers, QualifiedName,
    RowConflictPolicy, TableLayout,
};
pub use connection_limits::{PoolLimits, Pooler};
pub use kind::{ColumnType, UnknownKind};
pub use settings::KIND;
pub use store::Postgres;
